"""Stop strings: where an answer ends although the model goes on."""

from collections.abc import Sequence
from functools import cache

from transformers import PreTrainedTokenizerBase


class StopStrings:
    """Finds the token in which a stop string begins, without ever re-tokenising text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, strings: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.strings = tuple(strings)
        self._alone = cache(lambda token: self.decode([token]))
        # Each token of a stop string writes a byte of it; before them, what a token's text may
        # depend on: the beginning of its text or of a character.
        self._reach = 8 + max((len(string.encode()) for string in self.strings), default=0)

    def cut(self, token_ids: Sequence[int]) -> int | None:
        """How many tokens to keep, through the one in which the earliest stop string begins.

        None where none ends in the last token; asked at every token, it finds every stop string.
        """
        if not self.strings:
            return None
        if not self._may_complete(token_ids[-1]) or not self._starts(self._tail(token_ids)):
            return None
        starts = self._starts(token_ids)
        if not starts:
            return None
        through = self.decode(token_ids)[: min(starts) + 1]
        return next(
            count
            for count in range(1, len(token_ids) + 1)
            if self.decode(token_ids[:count]).startswith(through)
        )

    def _may_complete(self, token: int) -> bool:
        """Whether a stop string's last character can come with `token`.

        Part of a character's bytes can bring any, and a space may be left out of a token that is
        decoded alone.
        """
        text = self._alone(token)
        return any(
            last in text or last == " " or "\ufffd" in text
            for last in (string[-1] for string in self.strings)
        )

    def _tail(self, token_ids: Sequence[int]) -> Sequence[int]:
        """As many of the last tokens as a stop string can stand in; special ones have no text."""
        place, count = len(token_ids), 0
        while place and count < self._reach:
            place -= 1
            count += bool(self._alone(token_ids[place]))
        return token_ids[place:]

    def _starts(self, token_ids: Sequence[int]) -> list[int]:
        text = self.decode(token_ids)
        return [start for string in self.strings if (start := text.find(string)) >= 0]

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.tokenizer.decode(
            token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
