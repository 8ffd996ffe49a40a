"""Calibrate on the main study's other tasks and measure on each."""

import polars as pl

from tracecal.analyse.averages import averages
from tracecal.analyse.cross_task_transfer import measure_on_targets
from tracecal.analyse.improvements import gains, improvements
from tracecal.calibrate.answers import read_answers
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    seed, resamples, level = params.bootstrap
    answers = map(read_answers, inputs.labels, inputs.questions, inputs.scores, inputs.features)
    groups = (read_parquet(path, ["example_id", "group_id"]) for path in inputs.questions)
    splits = (read_parquet(path, ["example_id", "split", "part"]) for path in inputs.splits)
    tasks = [pl.lit(task).alias("task") for _, task in params.pairs]
    metrics, resampled = measure_on_targets(
        pl.concat(
            frame.join(own.select("example_id", "group_id"), on="example_id").with_columns(task)
            for frame, own, task in zip(answers, groups, tasks, strict=True)
        ),
        pl.concat(frame.with_columns(task) for frame, task in zip(splits, tasks, strict=True)),
        model=params.studies["main"]["model"],
        estimators=params.estimators,
        method=params.method,
        ece_bins=params.ece_bins,
        seed=seed,
        resamples=resamples,
    )
    gained = gains(averages(metrics, params.studies), params.baselines)
    found = improvements(gained, resampled, params.baselines, params.studies, level)
    write_parquet(metrics, snakemake.output.metrics)
    write_parquet(found, snakemake.output.improvements)
