"""Answers of a whole task: prompts in, rows of the traces file out."""

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_waves
from tracecal.decode.greedy import Decode, decode
from tracecal.decode.model import end_tokens
from tracecal.decode.stopping import StopStrings
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking


def answer_task(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: Asking,
    batch_size: int,
    keep: Keep = forget,
    decode: Decode = decode,
) -> list[Row]:
    """Decode every prompt greedily into a row of the traces file; finished rows go to `keep`.

    `decode` belongs to the engine that loaded `model`.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        answers = decode(model, ids, ends, stops, asking.max_new_tokens, slots=size)
        return [
            {
                **prompt,
                **vars(answer),
                "answer": stops.decode(answer.token_ids),
                "tokens": token_texts(tokenizer, answer.token_ids),
            }
            for prompt, answer in zip(batch, answers, strict=True)
        ]

    return in_waves(prompts, batch_size, "answers", work, keep)


def token_texts(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> list[str]:
    """The text that each token adds; joined, the decoded text including special tokens.

    A character of several byte tokens counts as the last one's text; bytes that never complete a
    character become U+FFFD at the end.
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    texts: list[str] = []
    # Each step decodes only a short tail, from the previous character boundary on.
    before = boundary = 0
    for end in range(1, len(token_ids) + 1):
        known, grown = decode(token_ids[before:boundary]), decode(token_ids[before:end])
        complete = not grown.endswith("\ufffd") or end == len(token_ids)
        texts.append(grown[len(known) :] if complete else "")
        if complete:
            before, boundary = boundary, end
    return texts
