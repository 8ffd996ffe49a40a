"""The answer that a format's reader returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracecal.logs.record import Details, StopToken
from tracecal.logs.steps import Step


@dataclass(frozen=True)
class RawAnswer(Details):
    """An answer as its format states it; `exact` holds entropies that need not be computed.

    `thoughts` is the reasoning that is stated beside the answer, empty where it is not shown; null
    where there is none.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float]] = field(default_factory=dict)
    thoughts: str | None = None


def stop_token(
    text: str | None, steps: Sequence[Step], stop_reason: str | int | None = None
) -> StopToken:
    """Whether the last token is the stop token, which the answer's text leaves out.

    It is if the tokens spell more than the text, or if the last one has no text. Spaces at either
    end do not count, as servers strip them; where only spaces differ it is unknown. Only vLLM gives
    a `stop_reason`, and its tokens include the stop token or stop string.
    """
    if stop_reason is not None and steps:
        return "included"
    if text is None or not steps or any(step.text is None for step in steps):
        return "unknown"
    joined = "".join(step.text for step in steps).lstrip()
    if joined == text.lstrip():
        return "absent" if steps[-1].text else "included"
    more = joined.startswith(text.strip()) and joined.strip() != text.strip()
    return "included" if more else "unknown"
