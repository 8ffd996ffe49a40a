"""Verbalised confidence: the model says how sure it is (Tian et al. 2023, two stages, top 1).

The task's own conversation goes on: after the decoded answer the model is asked how probable it
is that the answer is right, and its greedy reply is read for a number.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_waves
from tracecal.decode.confidence import parse_confidence
from tracecal.decode.greedy import decode
from tracecal.decode.model import end_tokens
from tracecal.decode.prompt import messages, put
from tracecal.decode.stopping import StopStrings
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking, until_stop
from tracecal.templates import filled

VERBALIZED = pa.schema(
    {"example_id": pa.string(), "reply": pa.string(), "confidence": pa.float64()}
)
REPLY_TOKENS = 16


def second_turns(
    tokenizer: PreTrainedTokenizerBase,
    answered: pl.DataFrame,
    asking: Asking,
    template: str,
    chat: bool | None,
) -> list[Prompt]:
    """A prompt per row of `answered`: its conversation, the answer, and `template` filled."""
    conversations = []
    for row in answered.iter_rows(named=True):
        question = filled(template, row["question"], row["context"], row["answer"])
        turns = [
            *messages(asking, row),
            {"role": "assistant", "content": row["answer"]},
            {"role": "user", "content": question},
        ]
        conversations.append((row["example_id"], turns))
    return put(tokenizer, conversations, REPLY_TOKENS, chat)


def confidence_replies(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[Prompt],
    stop: Sequence[str],
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """The greedy `reply` to every prompt and the `confidence` that it states; a row each,
    finished ones to `keep`.

    A reply ends like the task's answers, or after REPLY_TOKENS tokens.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, stop)

    def work(batch: list[Prompt], size: int) -> list[Row]:
        ids = [prompt["prompt_token_ids"] for prompt in batch]
        replies = [
            until_stop(stops.decode(answer.token_ids), stop).strip()
            for answer in decode(model, ids, ends, stops, REPLY_TOKENS, slots=size)
        ]
        return [
            {
                "example_id": prompt["example_id"],
                "reply": reply,
                "confidence": parse_confidence(reply),
            }
            for prompt, reply in zip(batch, replies, strict=True)
        ]

    return in_waves(prompts, batch_size, "replies", work, keep)
