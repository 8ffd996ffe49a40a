"""The text of an answer's tokens."""

from collections.abc import Sequence


def visible_texts(
    token_ids: Sequence[int], tokens: Sequence[str], special: frozenset[int]
) -> list[str]:
    """The text that each token adds to the answer: none for special tokens."""
    return ["" if token in special else text for token, text in zip(token_ids, tokens, strict=True)]
