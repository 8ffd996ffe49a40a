"""The part of a decoded answer that is judged."""

from collections.abc import Iterable

from trace_workflow.config.prompting import until_stop
from tracecal.io.expressions import matches


def extract(answer: str, stop: Iterable[str] = (), pattern: str | None = None) -> str:
    """The answer before its earliest stop string, narrowed to group 1 of `pattern`'s last match.

    Without a match the whole answer counts: a model that ignores the format may still be correct.
    An answer that begins with a stop string is empty. Whitespace at the ends is removed. Raises
    `InputError` where the pattern takes too long.
    """
    answer = until_stop(answer, stop)
    if pattern is not None and (all_matches := list(matches(pattern, answer))):
        answer = all_matches[-1].group(1) or ""
    return answer.strip()


def first_line(text: str) -> str:
    """The first line that holds more than whitespace; only a line feed ends a line."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")
