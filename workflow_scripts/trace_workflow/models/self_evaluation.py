"""The decoded answers that a model is asked about."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from trace_workflow.config.prompting import until_stop
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_traces


def decoded_answers(traces: str | Path, task: str | Path, stop: Iterable[str]) -> pl.DataFrame:
    """`example_id`, `question`, `context` and the decoded `answer` of every evaluated example.

    The answer is the stripped text before its earliest stop string; it may be empty.
    """
    answers = evaluated(
        read_traces(traces, ["example_id", "answer"]), task, ["question", "context"]
    )
    texts = [until_stop(text, stop).strip() for text in answers["answer"]]
    return answers.with_columns(answer=pl.Series(texts, dtype=pl.String))
