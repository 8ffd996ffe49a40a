"""Calibrate on the main study's other tasks and measure on each."""

import polars as pl

from tracecal.analyse.cross_task_transfer import metrics_on_targets
from tracecal.calibrate.answers import read_answers
from tracecal.files import read_parquet, write_parquet
from tracecal.job import job

with job(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    answers = map(read_answers, inputs.labels, inputs.tasks, inputs.scores, inputs.features)
    splits = (read_parquet(path, ["example_id", "split", "part"]) for path in inputs.splits)
    tasks = [pl.lit(task).alias("task") for _, task in params.pairs]
    metrics = metrics_on_targets(
        pl.concat(frame.with_columns(task) for frame, task in zip(answers, tasks, strict=True)),
        pl.concat(frame.with_columns(task) for frame, task in zip(splits, tasks, strict=True)),
        model=params.model,
        estimators=params.estimators,
        method=params.method,
        ece_bins=params.ece_bins,
    )
    write_parquet(metrics, snakemake.output[0])
