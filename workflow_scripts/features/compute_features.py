"""Compute the trace features of a task's evaluation answers."""

from tracecal.decode.traces import read_traces
from tracecal.features.features import answer_features
from tracecal.jobs.job import job
from tracecal.storage.files import write_parquet
from tracecal.tasks.roles import evaluated

with job(snakemake):
    traces = read_traces(snakemake.input.traces, ["example_id", "surprisal", "entropy"])
    # Selected after the features, as selecting long traces would copy them.
    write_parquet(evaluated(answer_features(traces), snakemake.input.task), snakemake.output[0])
