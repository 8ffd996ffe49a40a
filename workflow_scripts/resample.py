"""Measure every compared estimator on resamples of a task's examples."""

from trace_job import job
from tracecal.estimators.estimator import PICKED
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet, write_parquet
from tracecal.statistics.resampling import resample_metrics

with job(snakemake):
    params, wildcards = snakemake.params, snakemake.wildcards
    labels = read_parquet(snakemake.input.labels, ["example_id", "correct"])
    answers = evaluated(labels, snakemake.input.task, ["group_id"])
    values = resample_metrics(
        read_parquet(
            snakemake.input.predictions, ["estimator", "split", "example_id", "probability"]
        ),
        answers.select("example_id", "group_id", "correct"),
        read_parquet(snakemake.input.scores, needed=["example_id"]),
        model=wildcards.model,
        task=wildcards.task,
        estimators=[*params.estimators, PICKED],
        seed=params.seed,
        resamples=params.resamples,
    )
    write_parquet(values, snakemake.output[0])
