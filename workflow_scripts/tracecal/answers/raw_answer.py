"""An answer as its format states it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracecal.answers.step import Step

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]


@dataclass(frozen=True, kw_only=True)
class Details:
    """What a row says of its answer besides the trace; null where it says nothing.

    `stop_token` says whether the trace includes the stop token ('none': it ended without one),
    `processed` whether its probabilities are those after temperature, penalties or truncation.
    `reasoning` says whether it precedes the answer, and of which tokens the trace then is: of the
    answer ('apart'), of the reasoning ('alone') or of both ('within'). Answers to variants of one
    question share a `group_id`. `created` is when it was given, in seconds since 1970.
    """

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    reasoning: Reasoning = "none"
    model: str | None = None
    group_id: str | None = None
    correct: bool | None = None
    created: float | None = None


@dataclass(frozen=True)
class RawAnswer(Details):
    """An answer as its format states it; `exact` holds entropies that need not be computed, null
    at tokens that lack one.

    `thoughts` is the reasoning that is stated beside the answer, empty where it is not shown; null
    where there is none.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None
