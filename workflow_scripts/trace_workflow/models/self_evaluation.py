"""Self-evaluation: a model judges its own answers.

1. `decoded_answers` reads the answers, and `ask_about_answers` runs the step that asks about them.
2. P(True) (Kadavath et al. 2022) shows question and answer, without worked examples or samples,
   and reads the probabilities of (A) true and (B) false for the next token.
3. Verbalised confidence (Tian et al. 2023, two stages, top 1) asks for a number in a second turn.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings, filled, until_stop
from trace_workflow.models.decoding import decode
from trace_workflow.models.prompts import messages, tokenised_prompts
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_batches, in_waves
from tracecal.capture.context import padded_context, shared_prefix
from tracecal.capture.model import load_tokenizer
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.tokens import end_tokens
from tracecal.errors import InputError
from tracecal.io.evaluated import evaluated
from tracecal.io.journal import Row
from tracecal.io.traces import read_traces


def ask_about_answers(
    step: DecodingStep,
    answers: pl.DataFrame,
    prompts_of: Callable[[PreTrainedTokenizerBase, pl.DataFrame], list[Prompt]],
    schema: pa.Schema,
    policy: str,
    work: Callable[..., object],
    *arguments: object,
    notes: Callable[[pa.Table], dict[str, str]],
) -> None:
    """Ask the step's model about `answers`, by one prompt each, and write its replies.

    `prompts_of(tokenizer, answers)` makes the prompts. The other parameters are those of `record`;
    the tokenizer is the first of the arguments that `work` gets after the prompts.
    """
    tokenizer = load_tokenizer(step.weights)
    prompts = prompts_of(tokenizer, answers)
    record(step, prompts, schema, policy, work, tokenizer, *arguments, notes=notes)


def decoded_answers(traces: str | Path, task: str | Path, stop: Iterable[str]) -> pl.DataFrame:
    """`example_id`, `question`, `context` and the decoded `answer` of every evaluated example.

    The answer is the stripped text before its earliest stop string; it may be empty.
    """
    answers = evaluated(
        read_traces(traces, ["example_id", "answer"]), task, ["question", "context"]
    )
    texts = [until_stop(text, stop).strip() for text in answers["answer"]]
    return answers.with_columns(answer=pl.Series(texts, dtype=pl.String))


P_TRUE = pa.schema({"example_id": pa.string(), "p_a": pa.float64(), "p_b": pa.float64()})

# The space before a word as byte-level (GPT) and SentencePiece tokenizers write it
SPACES = ("", " ", "Ġ", "▁")


def judging_prompts(
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    template: str,
    start: str,
    chat: bool | None,
) -> list[Prompt]:
    """A prompt per row of `answers` that lets the model judge the answer in one token."""
    conversations = []
    for row in answers.iter_rows(named=True):
        text = filled(template, row["question"], row["context"], row["answer"])
        conversations.append((row["example_id"], [{"role": "user", "content": text}]))
    return tokenised_prompts(tokenizer, conversations, 1, chat, start)


def option_tokens(tokenizer: PreTrainedTokenizerBase, letter: str) -> list[int]:
    """Ids of the tokens that write `letter` alone, with or without a space before it.

    Tokens that write more, such as "A)", do not count. Raises `InputError` where there is none.
    """
    vocabulary = tokenizer.get_vocab()
    ids = sorted({vocabulary[s + letter] for s in SPACES if s + letter in vocabulary})
    if not ids:
        raise InputError(
            f"the vocabulary of {tokenizer.name_or_path} has no token {letter!r}, which P(True) "
            "needs; leave the estimator 'p_true' out."
        )
    return ids


def judge_answers(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """One row per prompt with the probabilities `p_a` and `p_b`; finished rows go to `keep`.

    Each is the sum over the tokens that write the option. Raises `InputError` where the model
    yields NaN or infinite logits.
    """
    options = [option_tokens(tokenizer, letter) for letter in "AB"]

    def work(batch: list[Prompt]) -> list[Row]:
        probabilities = next_probabilities(model, [prompt["prompt_token_ids"] for prompt in batch])
        p_a, p_b = (probabilities[:, tokens].sum(-1).tolist() for tokens in options)
        return [
            {"example_id": prompt["example_id"], "p_a": a, "p_b": b}
            for prompt, a, b in zip(batch, p_a, p_b, strict=True)
        ]

    return in_batches(prompts, batch_size, "answers", work, keep)


@torch.inference_mode()
def next_probabilities(model: PreTrainedModel, prompts: Sequence[list[int]]) -> torch.Tensor:
    """The raw distribution of the token after each prompt, float64 [batch, vocabulary]."""
    context, ids = padded_context(model, prompts, shared_prefix(model, prompts))
    probabilities = context.read(ids).double().softmax(-1)
    if not (finite := probabilities.isfinite().all(-1)).all():
        raise NotFiniteError(finite.tolist().index(False), "judging its answer")
    return probabilities


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
