"""An answer as its format states it, before its trace is computed.

A format makes a `RawAnswer` of a row, `reasoning` cuts it to the tokens of the trace, and `trace`
makes the `Record` of it. Most formats infer its stop token, by `infer_stop_token`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tracecal.answers.step import Step

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]
UNDECODED = "\ufffd"  # part of a character, as servers write it
NO_FINISHES = ("", "null", "none")  # what some servers write of an answer that goes on


def is_finish(reason: Any) -> bool:
    """Whether a `finish_reason` says that the answer has ended.

    >>> is_finish("stop"), is_finish("null"), is_finish(None)
    (True, False, False)
    """
    return bool(reason) and str(reason).strip().lower() not in NO_FINISHES


@dataclass(frozen=True, kw_only=True)
class Details:
    """Facts that a row states about its answer besides the trace; None if it states none.

    Attributes
    ----------
    asked
        A digest of what was sent and of the row's own columns of the question, where the prompt
        alone does not say it.
    stop_token
        Whether the trace includes the stop token; 'none' where the answer ended without one.
    processed
        Whether the probabilities are those after temperature, penalties or truncation.
    decoding
        The settings of the request that change probabilities; None where it leaves them open.
    reasoning
        Whether reasoning precedes the answer, and whose tokens the trace then holds: the answer's
        ('apart'), the reasoning's ('alone') or both ('within').
    group_id
        Shared by the answers to variants of one question.
    row_task
        The task that the row names.
    unsure
        Whether the verdict was "unsure", which counts as wrong.
    created
        When the answer was given, in seconds since 1970.
    """

    answer: str | None = None
    prompt: str | None = None
    asked: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    decoding: str | None = None
    reasoning: Reasoning = "none"
    model: str | None = None
    group_id: str | None = None
    row_task: str | None = None
    correct: bool | None = None
    unsure: bool = False
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
    stated
        The verdicts beside the answer, by name, as they are written; they must agree.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)


def infer_stop_token(
    text: str | None, steps: Sequence[Step], stop_reason: str | int | None = None
) -> StopToken:
    """Whether the last token is the stop token, which the text of the answer leaves out.

    It is if the tokens spell more than the text, or if the last one has no text. Spaces at either
    end do not count, since servers strip them; where only spaces differ, it is unknown. Only vLLM
    states a `stop_reason`, and its tokens include the stop token or stop string.

    >>> infer_stop_token("Lima", [Step("Lima", 5, -0.25), Step("</s>", 2, -0.5)])
    'included'
    """
    if stop_reason is not None and steps:
        return "included"
    if text is None or not steps or any(step.text is None for step in steps):
        return "unknown"
    spelled = "".join(step.text for step in steps).lstrip()
    if spelled == text.lstrip():
        return "absent" if steps[-1].text else "included"
    longer = spelled.startswith(text.strip()) and spelled.strip() != text.strip()
    # Parts of a character spell nothing, so only the end is compared.
    last = steps[-1].text.strip(UNDECODED + " ") if UNDECODED in spelled else ""
    return "included" if longer or (last and not text.rstrip().endswith(last)) else "unknown"
