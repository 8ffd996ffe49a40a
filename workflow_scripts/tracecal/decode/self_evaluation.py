"""The answers that P(True) and verbalised confidence ask a model to evaluate."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.tasks.asking import until_stop
from tracecal.tasks.roles import evaluated


def decoded_answers(traces: str | Path, task: str | Path, stop: Iterable[str]) -> pl.DataFrame:
    """`example_id`, `question`, `context` and the decoded `answer` of every evaluated example.

    The answer is the stripped text before its earliest stop string; it may be empty.
    """
    answers = evaluated(
        read_traces(traces, ["example_id", "answer"]), task, ["question", "context"]
    )
    texts = [until_stop(text, stop).strip() for text in answers["answer"]]
    return answers.with_columns(answer=pl.Series(texts, dtype=pl.String))
