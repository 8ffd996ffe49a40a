"""Whether a trace includes the stop token, inferred from the texts of its tokens."""

from collections.abc import Sequence

from tracecal.answers.raw_answer import StopToken
from tracecal.answers.step import Step

UNDECODED = "\ufffd"  # part of a character, as servers write it


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
