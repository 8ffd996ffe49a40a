"""Whether a trace includes the stop token."""

from collections.abc import Sequence

from tracecal.answers.raw_answer import StopToken
from tracecal.answers.step import Step


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
    # Parts of a character spell nothing, so the end alone is compared.
    last = steps[-1].text.strip(UNDECODED + " ") if UNDECODED in joined else ""
    return "included" if more or (last and not text.rstrip().endswith(last)) else "unknown"


UNDECODED = "\ufffd"  # part of a character, as servers write it
