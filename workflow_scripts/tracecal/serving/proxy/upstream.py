"""A server behind the proxy: its address, its connections and requests to it."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import (
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from tracecal.serving.proxy.json_bodies import UnreadableError
from tracecal.serving.proxy.settings import ProxySettings
from tracecal.serving.proxy.visitors import is_local

# Servers close idle connections after 5 s or more; a server that closes one under a request loses
# the request, which is not sent again: it may have been worked on, and paid for.
IDLE_SECONDS = 2.0
N_TURNS = 3  # of the event loop, in which it notices which idle connections were closed
# Headers that the library would add.
AUTOMATIC_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass
class UpstreamServer:
    """The server of the settings. It keeps no cookie and follows no redirect."""

    settings: ProxySettings

    @property
    def base(self) -> str:
        """The address that a request's path is appended to."""
        return self.settings.upstream.rstrip("/").removesuffix("/v1")

    async def connected(self, application: web.Application) -> AsyncIterator[None]:
        """Hold connections while the application runs."""
        settings = self.settings
        async with ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(
                None, sock_connect=settings.connect_timeout, sock_read=settings.timeout
            ),
            auto_decompress=False,
            skip_auto_headers=AUTOMATIC_HEADERS,
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
        """Send a request once; return the response, whose body is still unread.

        Raises `UnreadableError` for a status that no HTTP answer ends with.
        """
        url = URL(self.base + path, encoded=True)
        for _ in range(N_TURNS):
            await asyncio.sleep(0)
        response = await self.session.request(
            method, url, data=body, headers=headers, allow_redirects=False
        )
        if not 200 <= response.status <= 599:
            response.close()
            raise UnreadableError(f"status {response.status}")
        return response


def _outer_proxy(url: URL) -> str | None:
    """Return the HTTP proxy that the environment names for a server, none for this machine's."""
    host = url.host or ""
    if is_local(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)
