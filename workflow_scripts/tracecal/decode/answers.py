"""Answers of a whole task: prompts in, rows of the traces file out."""

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_waves
from tracecal.decode.greedy import Answer, Decode, decode
from tracecal.decode.model import end_tokens
from tracecal.decode.stopping import StopStrings
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking


def answer_task(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[Prompt],
    asking: Asking,
    batch_size: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """Decode every prompt greedily; one row of the traces file each, finished ones to `keep`.

    `decode` is that of the engine which loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        answers = decode(model, ids, ends, stops, asking.max_new_tokens, slots=size)
        return [
            prompt | _trace(answer, tokenizer, stops)
            for prompt, answer in zip(batch, answers, strict=True)
        ]

    return in_waves(prompts, batch_size, "answers", work, keep)


def _trace(answer: Answer, tokenizer: PreTrainedTokenizerBase, stops: StopStrings) -> Row:
    return {
        "answer": stops.decode(answer.token_ids),
        "token_ids": answer.token_ids,
        "tokens": token_texts(tokenizer, answer.token_ids),
        "surprisal": answer.surprisal,
        "entropy": answer.entropy,
        "finish_reason": answer.finish_reason,
    }


def token_texts(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> list[str]:
    """The text each token adds; joined, they are the decoded text with special tokens kept.

    A character of several byte tokens is added by its last one; bytes that never become a
    character stand as U+FFFD at the end.
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    texts: list[str] = []
    # Only a short tail is decoded at each step: from the previous character boundary on.
    before = boundary = 0
    for end in range(1, len(token_ids) + 1):
        known, grown = decode(token_ids[before:boundary]), decode(token_ids[before:end])
        complete = not grown.endswith("\ufffd") or end == len(token_ids)
        texts.append(grown[len(known) :] if complete else "")
        if complete:
            before, boundary = boundary, end
    return texts
