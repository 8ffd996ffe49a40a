"""The share of correct answers of each model on each task, over all languages and for each."""

from pathlib import Path

import polars as pl

from trace_job import job
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.traces import arrow_metadata, read_arrow
from tracecal.statistics.metrics import accuracy_by_language, accuracy_row

with job(snakemake):
    rows, divided = [], []
    files = (snakemake.input.labels, snakemake.input.traces, snakemake.input.tasks)
    for labels, traces, task in zip(*files, strict=True):
        ends = read_arrow(traces, ["example_id", "finish_reason"])
        correct = read_parquet(labels, ["example_id", "correct"])
        judged = evaluated(correct.join(ends, on="example_id", validate="1:1"), task)
        pair = Path(labels).parent.name, Path(labels).stem
        questions = read_parquet(task, needed=["example_id", "role", "language"])
        is_plain = "prompting" in arrow_metadata(traces)
        row = accuracy_row(judged, questions, *pair)
        rows.append(row.with_columns(asked_without_template=pl.lit(is_plain)))
        divided.append(accuracy_by_language(judged, questions, *pair))
    write_parquet(pl.concat(rows), snakemake.output.accuracy)
    write_parquet(pl.concat(divided), snakemake.output.languages)
