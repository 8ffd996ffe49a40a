"""Tokens of answers: which end one, which are marks, and the text that each adds."""

from collections.abc import Sequence

from transformers import (
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tracecal.capture.model import GENERATION_CONFIG
from tracecal.errors import InputError

ANSWER = "ANSWER"  # an assistant's message, behind which a chat template writes what ends a turn


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids that end an answer: all that `declared_ends` finds.

    Raises `InputError` where the model declares none, or something other than token ids.
    """
    ends = declared_ends(model.generation_config, model.config, tokenizer)
    if not ends:
        raise InputError(
            f"{model.name_or_path} declares no end-of-sequence token; add eos_token_id to its "
            f"{GENERATION_CONFIG}."
        )
    return sorted(ends)


def declared_ends(
    generation_config: GenerationConfig | None,
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
) -> dict[int, list[str]]:
    """Where each id that ends an answer is declared; one place may lack what another says.

    Raises `InputError` where something other than token ids is declared.
    """
    places = {
        GENERATION_CONFIG: generation_config.eos_token_id if generation_config else None,
        "config.json": getattr(config, "eos_token_id", None),
        "tokenizer": tokenizer.eos_token_id,
        "chat template": template_end(tokenizer),
    }
    ends: dict[int, list[str]] = {}
    for place, declared in places.items():
        ids = declared if isinstance(declared, list) else [declared]
        for token_id in filter(lambda token_id: token_id is not None, ids):
            if not isinstance(token_id, int):
                raise InputError(
                    f"{tokenizer.name_or_path}: its eos_token_id {declared!r} is not a token id or "
                    f"a list of them; correct it in {GENERATION_CONFIG} or config.json."
                )
            ends.setdefault(token_id, []).append(place)
    return ends


def template_end(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The mark that the chat template writes behind an assistant's message; None without one."""
    if tokenizer.chat_template is None:
        return None
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except Exception:  # a template is a program and may raise anything
        return None
    _, answer, behind = text.rpartition(ANSWER)
    ids = tokenizer(behind.lstrip(), add_special_tokens=False)["input_ids"] if answer else []
    return ids[0] if ids and ids[0] in special_ids(tokenizer) else None


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
