"""Refuse cross-site requests: those that a page of another site made a browser send.

They would spend the user's keys, or read the monitored answers. Their ``Origin`` names the other
site; after DNS rebinding their ``Host`` does. Browsers send JSON to another site only where it
agrees, and forms have other types.
"""

from ipaddress import ip_address

from aiohttp import web
from yarl import URL

from tracecal.serving.endpoints import endpoint_of
from tracecal.serving.failures import error_response
from tracecal.serving.proxy_settings import ProxySettings

# Types of a body that a page may send to any server; no API takes them.
FORM_TYPES = ("", "text/plain", "application/x-www-form-urlencoded")


def refusal(request: web.Request, settings: ProxySettings) -> web.Response | None:
    """Return the response to a request that may come from a page of another site, else None."""
    name = request.headers.get("Host", "")  # else the library asks the network for one, and waits
    host = _host_of(f"//{name}")
    address = None
    if request.transport:
        address = (request.transport.get_extra_info("sockname") or ("",))[0]
    if not (host and (host == address or host in settings.allow_host or is_local(host))):
        return error_response(403, f"it is not known as {name!r} (--allow-host)")
    origin = request.headers.get("Origin", "").lower()
    is_same_site = origin in ("", f"http://{name.lower()}", f"https://{name.lower()}")
    if not (is_same_site or origin in settings.allow_origin):
        return error_response(403, f"the page {origin!r} may not ask it (--allow-origin)")
    if request.method == "POST" and request.body_exists and not _has_api_body(request):
        return error_response(415, "expected JSON, with 'Content-Type: application/json'")
    return None


def _has_api_body(request: web.Request) -> bool:
    """Return whether the body's type is one that no form of a page sends."""
    content_type = request.content_type if "Content-Type" in request.headers else ""
    if endpoint_of(request.path) is not None:
        return content_type == "application/json"
    return content_type not in FORM_TYPES


def _host_of(address: str) -> str | None:
    try:
        return URL(address).host
    except ValueError:
        return None


def is_local(host: str) -> bool:
    """Return whether a name or address is that of this machine.

    >>> is_local("127.0.0.1"), is_local("example.org")
    (True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
