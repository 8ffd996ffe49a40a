"""Compute the trace features of a task's evaluation answers."""

from trace_job import job
from tracecal.estimators.features import answer_features
from tracecal.io.evaluated import evaluated
from tracecal.io.files import write_parquet
from tracecal.io.traces import read_traces

with job(snakemake):
    traces = read_traces(snakemake.input.traces, ["example_id", "surprisal", "entropy"])
    # Selected after the features, as selecting long traces would copy them.
    write_parquet(evaluated(answer_features(traces), snakemake.input.task), snakemake.output[0])
