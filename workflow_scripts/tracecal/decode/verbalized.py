"""Verbalised confidence: the model states how sure it is (Tian et al. 2023, two stages, top 1).

The task's conversation continues: after the decoded answer a prompt asks how probable it is that
the answer is correct, and the greedy reply is parsed for a number.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, Prompt, forget, in_waves
from tracecal.decode.confidence import parse_confidence
from tracecal.decode.greedy import decode
from tracecal.decode.model import end_tokens
from tracecal.decode.prompt import messages, tokenised_prompts
from tracecal.decode.stopping import StopStrings
from tracecal.inputs.templates import filled
from tracecal.storage.journal import Row
from tracecal.tasks.asking import Asking, until_stop

VERBALIZED = pa.schema(
    {"example_id": pa.string(), "reply": pa.string(), "confidence": pa.float64()}
)
REPLY_TOKENS = 16


def second_turns(
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    asking: Asking,
    template: str,
    chat: bool | None,
) -> list[Prompt]:
    """A prompt per row of `answers`: its conversation, the answer, and `template` filled in."""
    conversations = []
    for row in answers.iter_rows(named=True):
        question = filled(template, row["question"], row["context"], row["answer"])
        turns = [
            *messages(asking, row),
            {"role": "assistant", "content": row["answer"]},
            {"role": "user", "content": question},
        ]
        conversations.append((row["example_id"], turns))
    return tokenised_prompts(tokenizer, conversations, REPLY_TOKENS, chat)


def confidence_replies(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    stop: Sequence[str],
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """One row per prompt: the greedy `reply` and the `confidence` that it states, or null.

    A reply ends like the task's answers, or after REPLY_TOKENS tokens. Finished rows go to `keep`.
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
