"""Numbers and names as sentences have them, and the captions that hold them.

Apart from the tables themselves: the rules read it whenever the workflow starts.
"""

from collections.abc import Mapping, Sequence


def filled(
    words: Mapping[str, str], facts: Mapping[str, object], as_printed: bool = False
) -> dict[str, str]:
    """`title` and `caption` of a table, the caption's {placeholders} replaced by facts.

    What the caption says of what is `added` to the paper's table goes with it.
    """
    parts = [words["caption"], "" if as_printed else words.get("added", "")]
    caption = " ".join(filter(None, (part.strip() for part in parts)))
    return {"title": words["title"], "caption": caption.format_map(facts)}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
