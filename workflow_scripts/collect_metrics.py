"""Gather the metrics of all (model, task) pairs."""

import polars as pl

from trace_job import job
from tracecal.io.files import read_parquet, write_parquet

with job(snakemake):
    for kind in ("metrics", "languages"):
        frames = [read_parquet(path) for path in snakemake.input[kind]]
        write_parquet(pl.concat(frames), snakemake.output[kind])
