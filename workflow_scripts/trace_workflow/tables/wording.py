"""Small pieces of English that captions, notes and findings share.

The rules import this module at every start of the workflow, so it imports nothing itself.
"""

from collections.abc import Mapping, Sequence


def fill_caption(
    words: Mapping[str, str], facts: Mapping[str, object], as_in_paper: bool = False
) -> dict[str, str]:
    """`title` and `caption` of a table, with the facts in place of the caption's {placeholders}.

    `as_in_paper` leaves out what the caption says about additions to the paper's table.

    >>> fill_caption({"title": "Main", "caption": "Of {model}."}, {"model": "Tiny"})
    {'title': 'Main', 'caption': 'Of Tiny.'}
    """
    parts = [words["caption"], "" if as_in_paper else words.get("added", "")]
    caption = " ".join(filter(None, (part.strip() for part in parts)))
    return {"title": words["title"], "caption": caption.format_map(facts)}


def count(number: int, noun: str) -> str:
    """The number with its noun.

    >>> count(1, "task"), count(3, "task")
    ('1 task', '3 tasks')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def join_names(names: Sequence[str]) -> str:
    """An enumeration.

    >>> join_names(["A"]), join_names(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    *leading, last = names
    return f"{', '.join(leading)} and {last}" if leading else last


def note(sentence: str, parts: Sequence[str]) -> list[str]:
    """The sentence with its list of parts; no note without parts.

    >>> note("Undefined", ["ECE on SVAMP", "AUROC on MLQA"]), note("Undefined", [])
    (['Undefined: ECE on SVAMP; AUROC on MLQA.'], [])
    """
    return [f"{sentence}: {'; '.join(parts)}."] if parts else []
