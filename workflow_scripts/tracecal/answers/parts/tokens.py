"""Which tokens spell which characters of an answer."""

from collections.abc import Sequence

import numpy as np
import polars as pl


def token_places(answers: pl.Series, tokens: pl.Series) -> tuple[np.ndarray, np.ndarray, pl.Series]:
    """The answer's characters before each token and through it, and which answers these spell.

    The first two hold all answers' tokens [tokens], of an answer whose tokens do not spell it
    zeros; the last is a mask [answers]. Tokens may spell more than their answer: special ones, and
    white space around it, which servers strip. A token without text, a special one or one that
    only begins a character, stands where the next character does.
    """
    joined = tokens.list.join("")
    # Of all answers at once; what remains, in the second step.
    spelled = joined.str.starts_with(answers).fill_null(False)
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = tokens.explode(empty_as_null=False, keep_nulls=False)
    lengths = flat.str.len_chars().to_numpy().astype(np.int64)
    first = np.cumsum(sizes) - sizes
    mask = spelled.to_numpy().copy()
    skipped = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(~mask & (sizes > 0)):
        answer, text = answers[int(row)] or "", joined[int(row)]
        own = slice(first[row], first[row] + sizes[row])
        if answer and answer == text.strip():
            skipped[row], mask[row] = len(text) - len(text.lstrip()), True
        elif (kept := _without_special(answer, flat[own].to_list())) is not None:
            lengths[own], mask[row] = kept, True
    total = np.cumsum(lengths)
    before = np.append(0, total)[first]  # characters of the answers before
    ends = total - np.repeat(before + skipped, sizes)
    most = np.repeat(np.where(mask, answers.str.len_chars().fill_null(0).to_numpy(), 0), sizes)
    return np.clip(ends - lengths, 0, most), np.clip(ends, 0, most), pl.Series(mask)


def _without_special(answer: str, tokens: Sequence[str]) -> list[int] | None:
    """How many characters each token adds to the answer, where others than the last are special."""
    place, added = 0, []
    for token in tokens:
        added.append(len(token) if answer.startswith(token, place) else 0)
        place += added[-1]
    return added if place == len(answer) else None


def cover(
    starts: np.ndarray, ends: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens [start, end) that spell the characters [first, last), of many spans at once.

    `starts` and `ends` [tokens] are the characters before and through each token, not decreasing. A
    token without text at a span's first character belongs to it: it begins that character.
    """
    start = np.minimum(
        np.searchsorted(starts, first, "left"), np.searchsorted(ends, first, "right")
    )
    return start, np.searchsorted(starts, last, "left")
