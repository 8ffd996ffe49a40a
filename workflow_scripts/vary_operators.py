"""Score a task's evaluation answers with TRACE under other settings and permuted positions."""

import polars as pl

from trace_job import job
from trace_workflow.analyses.operator_variants import permuted_scores, varied_scores
from tracecal.io.evaluated import evaluated
from tracecal.io.files import write_parquet
from tracecal.io.traces import read_traces

with job(snakemake):
    traces = read_traces(snakemake.input.traces, ["example_id", "surprisal", "entropy"])
    answers = evaluated(traces, snakemake.input.task)
    permuted = permuted_scores(answers, snakemake.wildcards.task, snakemake.params.seed)
    write_parquet(pl.concat([varied_scores(answers), permuted]), snakemake.output[0])
