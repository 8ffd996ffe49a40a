"""What a model is asked about its own answers: the evaluated ones, as they were decoded."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.storage.files import read_parquet
from tracecal.tasks.asking import until_stop
from tracecal.tasks.roles import evaluated


def answered(traces: str | Path, task: str | Path, stop: Iterable[str]) -> pl.DataFrame:
    """`example_id`, `question`, `context` and the decoded `answer` of every evaluated example.

    The answer is the text before its earliest stop string, without white space around it; it
    may be empty.
    """
    questions = evaluated(read_parquet(task, ["question", "context"]), task)
    answers = evaluated(read_traces(traces, ["example_id", "answer"]), task)
    cut = [until_stop(text, stop).strip() for text in answers["answer"]]
    texts = pl.Series("answer", cut, dtype=pl.String)
    return questions.select("example_id", "question", "context").with_columns(texts)
