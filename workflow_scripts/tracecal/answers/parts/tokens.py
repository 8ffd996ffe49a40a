"""Which tokens spell which characters of an answer.

`token_characters` places all tokens of many answers, and `covering_tokens` finds those of spans.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl


def token_characters(
    answers: pl.Series, tokens: pl.Series
) -> tuple[np.ndarray, np.ndarray, pl.Series]:
    """The characters of the answer before each token and through it, and which answers are spelled.

    The first two hold the tokens of all answers [tokens], zeros for an answer that its tokens do
    not spell; the last is a mask [answers]. Tokens may spell more than their answer: special ones,
    and white space around it, which servers strip. A token without text, a special one or one that
    only begins a character, stands where the next character does.

    >>> token_characters(pl.Series(["Lima"]), pl.Series([["Li", "ma"]]))[:2]
    (array([0, 2]), array([2, 4]))
    """
    joined = tokens.list.join("")
    # Of all answers at once; the second step does what remains.
    is_spelled = joined.str.starts_with(answers).fill_null(False)
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = tokens.explode(empty_as_null=False, keep_nulls=False)
    lengths = flat.str.len_chars().to_numpy().astype(np.int64)
    first = np.cumsum(sizes) - sizes
    mask = is_spelled.to_numpy().copy()
    n_skipped = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(~mask & (sizes > 0)):
        answer, text = answers[int(row)] or "", joined[int(row)]
        row_tokens = slice(first[row], first[row] + sizes[row])
        if answer and answer == text.strip():
            n_skipped[row], mask[row] = len(text) - len(text.lstrip()), True
        elif (without := _lengths_without_special(answer, flat[row_tokens].to_list())) is not None:
            lengths[row_tokens], mask[row] = without, True
    total = np.cumsum(lengths)
    before = np.append(0, total)[first]  # characters of the answers before
    ends = total - np.repeat(before + n_skipped, sizes)
    size = np.where(mask, answers.str.len_chars().fill_null(0).to_numpy(), 0)
    size = np.repeat(size, sizes)
    return np.clip(ends - lengths, 0, size), np.clip(ends, 0, size), pl.Series(mask)


def _lengths_without_special(answer: str, tokens: Sequence[str]) -> list[int] | None:
    """How many characters each token adds to the answer, if all that add none are special."""
    position, lengths = 0, []
    for token in tokens:
        lengths.append(len(token) if answer.startswith(token, position) else 0)
        position += lengths[-1]
    return lengths if position == len(answer) else None


def covering_tokens(
    starts: np.ndarray, ends: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens [start, end) that spell the characters [first, last), of many spans at once.

    `starts` and `ends` [tokens] are the characters before and through each token, not decreasing. A
    token without text at the first character of a span belongs to it: it begins that character.
    """
    start = np.minimum(
        np.searchsorted(starts, first, "left"), np.searchsorted(ends, first, "right")
    )
    return start, np.searchsorted(starts, last, "left")
