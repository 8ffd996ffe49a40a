"""Tokens of answers: which end one, which are marks, and the text that each adds."""

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.capture.model import GENERATION_CONFIG
from tracecal.errors import InputError


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids that end an answer: from the generation config, else the model, else the tokenizer.

    Raises `InputError` where the model declares none, or something other than token ids.
    """
    for declared in (
        model.generation_config.eos_token_id if model.generation_config else None,
        getattr(model.config, "eos_token_id", None),
        tokenizer.eos_token_id,
    ):
        if declared is not None:
            ids = declared if isinstance(declared, list) else [declared]
            if not all(isinstance(token_id, int) for token_id in ids):
                raise InputError(
                    f"{model.name_or_path}: its eos_token_id {declared!r} is not a token id or a "
                    f"list of them; correct it in {GENERATION_CONFIG} or config.json."
                )
            return sorted(set(ids))
    raise InputError(
        f"{model.name_or_path} declares no end-of-sequence token; add eos_token_id to its "
        f"{GENERATION_CONFIG}."
    )


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the tokens that are marks, not text, which decoding an answer leaves out."""
    marks = {key for key, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(marks | set(tokenizer.all_special_ids))


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
