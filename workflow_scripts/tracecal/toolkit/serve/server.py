"""A server behind the proxy: its address, connections of its own, and requests to it."""

import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass
from ipaddress import ip_address

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from tracecal.toolkit.serve.settings import Settings

# Servers close idle connections after 5 s or more; one that closes under a request loses it.
IDLE = 2.0
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # of the library's own


@dataclass
class Server:
    """A server of the OpenAI kind. It keeps no cookie, and follows no redirect."""

    address: str
    settings: Settings

    @property
    def base(self) -> str:
        """The server's address, to which a request's path is appended."""
        return self.address.rstrip("/").removesuffix("/v1")

    async def connected(self, application: web.Application) -> AsyncIterator[None]:
        """Holds its connections while the application runs."""
        settings = self.settings
        async with ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=IDLE),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(
                None, sock_connect=settings.connect_timeout, sock_read=settings.timeout
            ),
            auto_decompress=False,
            skip_auto_headers=AUTOMATIC,
            proxy=_outer_proxy(URL(self.base)),
        ) as self.session:
            yield

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | AsyncIterator[bytes] | None,
        headers: CIMultiDict,
    ) -> ClientResponse:
        """The server's response; its body is still unread.

        A body at hand is sent once more where the server closed a kept connection meanwhile.
        """
        url = URL(self.base + path, encoded=True)
        options = {"data": body, "headers": headers, "allow_redirects": False}
        try:
            return await self.session.request(method, url, **options)
        except ClientConnectionError as error:
            if isinstance(error, ClientConnectorError | TimeoutError) or not isinstance(
                body, bytes
            ):
                raise
        return await self.session.request(method, url, **options)


def _outer_proxy(url: URL) -> str | None:
    """The HTTP proxy that the environment names for a server; none for one on this machine."""
    host = url.host or ""
    if is_local(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)


def is_local(host: str) -> bool:
    """Whether a name or address is that of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
