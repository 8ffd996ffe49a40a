"""A step that asks a model about its own decoded answers."""

from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from trace_workflow.config.prompting import until_stop
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.batches import Prompt
from tracecal.capture.model import load_tokenizer
from tracecal.io.evaluated import evaluated
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
