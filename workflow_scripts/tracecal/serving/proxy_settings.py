"""The settings of `tracecal serve`. Each start of a command reads this file: it loads little."""

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat, PositiveInt, field_validator

from tracecal.monitoring.monitor_settings import MonitorSettings

DAY = 86_400  # seconds
MAX_COUNT = 100_000
MAX_MB = 4096


class ProxySettings(MonitorSettings):
    """Where the proxy listens, what it asks of which server, and its limits."""

    upstream: str = Field(description="the server's address, such as http://localhost:8000")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8400, ge=0, le=65535, description="port to listen on; 0: any free one")
    allow_host: list[str] = Field(
        [],
        description="names by which clients reach the proxy, beside its address: of a tunnel or a "
        "container",
    )
    allow_origin: list[str] = Field(
        [], description="web pages that may ask, such as https://chat.example.org"
    )
    top: int = Field(20, ge=1, le=MAX_COUNT, description="log-probabilities to request per token")
    max_requests: PositiveInt = Field(
        1000, le=MAX_COUNT, description="requests at once; others get status 503"
    )
    max_body: PositiveFloat = Field(
        64, le=MAX_MB, description="MB of a request, or of an answer to score"
    )
    timeout: PositiveFloat = Field(
        600, le=DAY, description="seconds the server or a client may stall"
    )
    client_timeout: PositiveFloat = Field(
        75, le=DAY, description="seconds for headers, or a body to score"
    )
    watch: str | None = Field(None, description="SQLite state of monitors; shown at /metrics")
    on_alarm: Literal["withhold", "warn"] = Field(
        "withhold", description="after an alarm keep is null, or the log says so"
    )

    @field_validator("upstream")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            host, _ = parts.hostname, parts.port
        except ValueError:  # its message may repeat a key, as could ours
            raise ValueError("is not an address such as http://localhost:8000") from None
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("must not hold a password or query: keys are sent in headers")
        is_host = bool(host) and not any(letter.isspace() for letter in value)
        if parts.scheme not in ("http", "https") or not is_host:
            raise ValueError("is not an address such as http://localhost:8000")
        return value

    @field_validator("allow_host")
    @classmethod
    def _are_names(cls, values: list[str]) -> list[str]:
        for value in values:
            if not re.fullmatch(r"[\w.-]+|[0-9a-fA-F:.]+", value):
                raise ValueError(f"{value!r} is not a name alone, such as proxy.example.org")
        return [value.lower() for value in values]

    @field_validator("allow_origin")
    @classmethod
    def _are_origins(cls, values: list[str]) -> list[str]:
        for value in values:
            if not re.fullmatch(r"https?://[^\s/@]+", value):
                raise ValueError("is not an origin such as https://chat.example.org")
        return [value.lower() for value in values]

    @property
    def max_bytes(self) -> int:
        """`max_body` in bytes."""
        return int(self.max_body * 1e6)
