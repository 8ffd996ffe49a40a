"""The headers that the proxy passes on."""

from multidict import CIMultiDict

# Of a single connection; `Connection` names more of them.
HOP_BY_HOP = {
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
BODY_HEADERS = {"content-length", "content-encoding"}  # do not fit a changed body


def headers_to_pass_on(headers: CIMultiDict, dropped: set[str] = frozenset()) -> CIMultiDict:
    """Return the headers to pass on, repeated ones too, in their order."""
    of_connection = {
        name.strip().lower()
        for value in headers.getall("Connection", ())
        for name in value.split(",")
    }
    excluded = HOP_BY_HOP | of_connection | dropped
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in excluded
    )
