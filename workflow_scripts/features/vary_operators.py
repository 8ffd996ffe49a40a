"""Score a task's evaluation answers with TRACE under other settings and permuted positions."""

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.features.sensitivity import permuted_scores, varied_scores
from tracecal.jobs.job import job
from tracecal.storage.files import write_parquet
from tracecal.tasks.roles import evaluated

with job(snakemake):
    traces = read_traces(snakemake.input.traces, ["example_id", "surprisal", "entropy"])
    answers = evaluated(traces, snakemake.input.task)
    permuted = permuted_scores(answers, snakemake.wildcards.task, snakemake.params.seed)
    write_parquet(pl.concat([varied_scores(answers), permuted]), snakemake.output[0])
