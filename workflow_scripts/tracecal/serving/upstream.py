"""A server behind the proxy: its address, and requests to it."""

import asyncio
import urllib.request
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from multidict import CIMultiDict
from yarl import URL

from tracecal.serving.json_bodies import UnreadableError
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.visitors import is_local

# Headers that the library would add.
AUTOMATIC_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
CONNECT_TIMEOUT = 10.0  # seconds
STOPPED = "it had not answered when the proxy was stopped"


@dataclass
class UpstreamServer:
    """The server of the settings. It keeps no cookie and follows no redirect.

    Each request has a connection of its own: what a server writes after an answer, late or twice,
    would be the answer to the next request on the same one. `waits` are those for a response, and
    `responses` those whose body may still be read.
    """

    settings: ProxySettings
    waits: set[asyncio.Timeout] = field(default_factory=set)
    responses: weakref.WeakSet[ClientResponse] = field(default_factory=weakref.WeakSet)
    is_stopped: bool = False

    @property
    def base(self) -> str:
        """The address that a request's path is appended to."""
        return self.settings.upstream.rstrip("/").removesuffix("/v1")

    async def connected(self, application: web.Application) -> AsyncIterator[None]:
        """Make requests possible while the application runs."""
        settings, url = self.settings, URL(self.base)
        # The proxy that the environment names, none for this machine's servers.
        is_direct = is_local(url.host or "") or urllib.request.proxy_bypass(url.host or "")
        outer_proxy = None if is_direct else urllib.request.getproxies().get(url.scheme)
        async with ClientSession(
            connector=TCPConnector(limit=0, force_close=True),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(None, sock_connect=CONNECT_TIMEOUT, sock_read=settings.timeout),
            auto_decompress=False,
            skip_auto_headers=AUTOMATIC_HEADERS,
            proxy=outer_proxy,
        ) as self.session:
            yield

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | AsyncIterator[bytes] | None,
        headers: CIMultiDict,
    ) -> ClientResponse:
        """Send a request once, as it may be worked on and paid for; return the unread response.

        Raises `UnreadableError` for a status that no HTTP answer ends with.
        """
        url = URL(self.base + path, encoded=True)
        options = {"data": body, "headers": headers, "allow_redirects": False}
        wait = asyncio.timeout(0 if self.is_stopped else None)
        self.waits.add(wait)
        try:
            async with wait:
                response = await self.session.request(method, url, **options)
        except TimeoutError:
            if wait.expired():
                raise UnreadableError(STOPPED) from None
            raise
        finally:
            self.waits.discard(wait)
        self.responses.add(response)
        if not 200 <= response.status <= 599:
            response.close()
            raise UnreadableError(f"status {response.status}")
        return response

    def stop(self) -> None:
        """Let every request fail that still waits for the server."""
        self.is_stopped = True
        for wait in self.waits:
            wait.reschedule(0)
        for response in self.responses:
            response.content.set_exception(UnreadableError(STOPPED))
            response.close()
