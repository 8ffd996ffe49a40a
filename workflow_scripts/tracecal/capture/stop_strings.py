"""Stop strings: where an answer ends although the model would continue."""

from collections.abc import Sequence
from functools import cache

from transformers import PreTrainedTokenizerBase


class StopStrings:
    """Finds the token that a stop string begins in, without tokenising text again."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, strings: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.strings = tuple(strings)
        self._alone = cache(lambda token: self.decode([token]))
        # A stop string spans at most one token per byte. The 8 tokens before it are decoded too,
        # since a token's text can depend on the beginning of the text or of a character.
        self._reach = 8 + max((len(string.encode()) for string in self.strings), default=0)

    def cut(self, token_ids: Sequence[int]) -> int | None:
        """The number of tokens through the one in which the earliest stop string begins.

        None where no stop string ends in the last token: call it after every token.
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
        """Whether `token` may write a stop string's last character.

        A token of part of a character's bytes may complete any character, and a token decoded alone
        may lose a space.
        """
        text = self._alone(token)
        return any(
            last in text or last == " " or "\ufffd" in text
            for last in (string[-1] for string in self.strings)
        )

    def _tail(self, token_ids: Sequence[int]) -> Sequence[int]:
        """The last tokens, as many as a stop string can span; special tokens have no text."""
        begin, n_texts = len(token_ids), 0
        while begin and n_texts < self._reach:
            begin -= 1
            n_texts += bool(self._alone(token_ids[begin]))
        return token_ids[begin:]

    def _starts(self, token_ids: Sequence[int]) -> list[int]:
        text = self.decode(token_ids)
        return [start for string in self.strings if (start := text.find(string)) >= 0]

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.tokenizer.decode(
            token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
