"""The text that each token adds to an answer."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase


def token_texts(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> list[str]:
    """The text that each token adds; joined, they are the decoded text with special tokens.

    A character of several byte tokens is the text of the last one; bytes that never complete a
    character become U+FFFD at the end.
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    texts: list[str] = []
    # Each step decodes only a short tail, from the previous character boundary on.
    before = boundary = 0
    for end in range(1, len(token_ids) + 1):
        previous, grown = decode(token_ids[before:boundary]), decode(token_ids[before:end])
        complete = not grown.endswith("\ufffd") or end == len(token_ids)
        texts.append(grown[len(previous) :] if complete else "")
        if complete:
            before, boundary = boundary, end
    return texts
