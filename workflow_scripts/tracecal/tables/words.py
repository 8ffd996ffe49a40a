"""Captions, notes, and the counts and lists of names in them.

The rules import this at every start of the workflow, so it is kept apart from the tables.
"""

from collections.abc import Mapping, Sequence


def filled(
    words: Mapping[str, str], facts: Mapping[str, object], as_printed: bool = False
) -> dict[str, str]:
    """`title` and `caption` of a table, the caption's {placeholders} replaced by facts.

    `as_printed` leaves out what the caption says about additions to the paper's table.
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


def note(sentence: str, parts: Sequence[str]) -> list[str]:
    """The note that `sentence` applies to `parts`; none where there are no parts."""
    return [f"{sentence}: {'; '.join(parts)}."] if parts else []
