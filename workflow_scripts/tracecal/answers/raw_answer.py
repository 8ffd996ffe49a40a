"""An answer as its format states it, before its trace is computed.

A format makes a `RawAnswer` of a row, `reasoning` cuts it to the tokens of the trace, and `trace`
makes the `Record` of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tracecal.answers.step import Step

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]


@dataclass(frozen=True, kw_only=True)
class Details:
    """What a row states about its answer besides the trace; None where it states nothing.

    Attributes
    ----------
    stop_token
        Whether the trace includes the stop token; 'none' where the answer ended without one.
    processed
        Whether the probabilities are those after temperature, penalties or truncation.
    reasoning
        Whether reasoning precedes the answer, and whose tokens the trace then holds: the answer's
        ('apart'), the reasoning's ('alone') or both ('within').
    group_id
        Shared by the answers to variants of one question.
    created
        When the answer was given, in seconds since 1970.
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
    """An answer as its format states it.

    Attributes
    ----------
    exact
        Entropies that need not be computed, by name; None at tokens that lack one.
    thoughts
        The reasoning beside the answer, empty where it is hidden; None without reasoning.
    verdicts
        The verdicts of a harness, by their paths in the row; one counts where no label is named.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None
    verdicts: Mapping[str, Any] = field(default_factory=dict)
