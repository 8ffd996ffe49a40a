"""Verbalised confidence: the model states how sure it is (Tian et al. 2023, two stages, top 1)."""

import re
from collections.abc import Sequence

import polars as pl
import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings, filled, until_stop
from trace_workflow.models.decoding import decode
from trace_workflow.models.prompts import messages, tokenised_prompts
from tracecal.capture.batches import Keep, Prompt, forget, in_waves
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens
from tracecal.io.journal import Row

# A decimal comma has one or two digits after it: "1,000" is not a confidence
_NUMBER = r"(?:\d+(?:[.٫]\d+|,\d{1,2})?|[.٫]\d+)(?![.,٫]?\d)"
# Not inside a Latin word ("GPT4") or a longer number
_STATED = re.compile(
    rf"(?<![A-Za-z_\d.٫])(?<!\d,)(?P<sign>[-−]?)(?P<value>{_NUMBER})"
    rf"(?:\s*(?P<percent>%|٪|％|per\s?cent\b)|\s*(?:/|out of)\s*(?P<of>{_NUMBER}))?",
    re.IGNORECASE,
)


def parse_confidence(reply: str) -> float | None:
    """The confidence in [0, 1] that `reply` states.

    None where it states no confidence, one out of range, or several that differ.
    """
    stated = [_value(match) for match in _STATED.finditer(reply)]
    if not stated or any(value is None or not 0 <= value <= 1 for value in stated):
        return None
    first = stated[0]
    return first if all(abs(value - first) < 1e-9 for value in stated) else None


def _value(match: re.Match[str]) -> float | None:
    number = _number(match["value"])
    if match["sign"]:
        return None
    if match["percent"]:
        return number / 100
    if match["of"]:
        largest = _number(match["of"])
        return number / largest if largest else None
    if number <= 1:
        return number
    return number / 100 if number >= 2 else None


def _number(text: str) -> float:
    return float(text.replace(",", ".").replace("٫", "."))


VERBALIZED = pa.schema(
    {"example_id": pa.string(), "reply": pa.string(), "confidence": pa.float64()}
)
REPLY_TOKENS = 16


def second_turns(
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    asking: PromptSettings,
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
    """One row per prompt: the greedy `reply` and the `confidence` that it states, or None.

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
