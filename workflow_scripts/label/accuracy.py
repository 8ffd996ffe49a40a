"""The share of correct answers of each model on each task."""

from pathlib import Path

import polars as pl

from tracecal.calibrate.accuracy import accuracy_row
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet
from tracecal.tasks.roles import evaluated

with job(snakemake):
    rows = []
    for labels, task in zip(snakemake.input.labels, snakemake.input.tasks, strict=True):
        judged = evaluated(read_parquet(labels, ["example_id", "correct"]), task)
        rows.append(accuracy_row(judged, Path(labels).parent.name, Path(labels).stem))
    write_parquet(pl.concat(rows), snakemake.output[0])
