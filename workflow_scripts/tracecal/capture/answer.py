"""One decoded answer and its trace, which grow by a token per step."""

from dataclasses import dataclass, field


@dataclass
class Answer:
    """One decoded answer and its trace; the three lists have T >= 1 entries (values in nats)."""

    token_ids: list[int] = field(default_factory=list)
    surprisal: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    finish_reason: str | None = None  # None while it grows
