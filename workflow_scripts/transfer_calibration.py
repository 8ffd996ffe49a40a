"""Calibrate on the main study's other tasks and measure on each."""

import polars as pl

from tracecal.analyse.cross_task_transfer import measure_on_targets
from tracecal.analyse.intervals import improvement_intervals
from tracecal.calibrate.answers import read_answers
from tracecal.files import read_parquet, write_parquet
from tracecal.job import job

with job(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    answers = map(read_answers, inputs.labels, inputs.tasks, inputs.scores, inputs.features)
    groups = (read_parquet(path, ["example_id", "group_id"]) for path in inputs.tasks)
    splits = (read_parquet(path, ["example_id", "split", "part"]) for path in inputs.splits)
    tasks = [pl.lit(task).alias("task") for _, task in params.pairs]
    metrics, resampled = measure_on_targets(
        pl.concat(
            frame.join(own.select("example_id", "group_id"), on="example_id").with_columns(task)
            for frame, own, task in zip(answers, groups, tasks, strict=True)
        ),
        pl.concat(frame.with_columns(task) for frame, task in zip(splits, tasks, strict=True)),
        model=params.study["main"]["model"],
        estimators=params.estimators,
        method=params.method,
        ece_bins=params.ece_bins,
        seed=params.seed,
        resamples=params.resamples,
    )
    intervals = improvement_intervals(resampled, params.baselines, params.study, params.level)
    write_parquet(metrics, snakemake.output.metrics)
    write_parquet(intervals, snakemake.output.intervals)
