"""The settings of `tracecal serve`, checked before it starts."""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat, PositiveInt, field_validator

from tracecal.toolkit.watch.options import Watching


class Settings(Watching):
    """Where the proxy listens, what it asks of which server, and its limits."""

    upstream: str = Field(description="the server's address, such as http://localhost:8000")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8400, ge=0, le=65535, description="port to listen on; 0: any free one")
    top: int = Field(20, ge=1, description="log-probabilities to request per token")
    workers: PositiveInt = Field(1, description="number of processes")
    max_requests: PositiveInt = Field(
        1000, description="requests at once in each process; a request above gets status 503"
    )
    max_body: PositiveFloat = Field(64, description="MB of a request, or of an answer to score")
    connect_timeout: PositiveFloat = Field(10, description="seconds to connect to the server")
    timeout: PositiveFloat = Field(600, description="seconds the server or a client may stall")
    client_timeout: PositiveFloat = Field(
        75, description="seconds for a client to send its headers, and its body"
    )
    watch: str | None = Field(
        None, description="SQLite state of monitors; with it the proxy answers /metrics and /watch"
    )
    on_alarm: Literal["withhold", "warn"] = Field(
        "withhold", description="after an alarm of --watch, keep is null; or only the log says so"
    )

    @field_validator("upstream")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"{value!r} is not an address ({error})") from error
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ValueError(f"{value!r} is not an address such as http://localhost:8000")
        if parts.username or parts.password:
            raise ValueError("must not hold a password: clients send their own keys")
        return value

    @property
    def base(self) -> str:
        """The server's address, to which a request's path is appended."""
        return self.upstream.rstrip("/").removesuffix("/v1")

    @property
    def most_bytes(self) -> int:
        """`max_body` in bytes."""
        return int(self.max_body * 1e6)

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine, so that no HTTP proxy stands before it."""
        host = urlsplit(self.upstream).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")
