"""Calibrate on the main study's other tasks and measure on each."""

import polars as pl

from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.cross_task_transfer import measure_on_targets
from trace_workflow.analyses.improvements import gains, improvements
from trace_workflow.analyses.study_files import read_splits
from trace_workflow.jobs.job import job
from tracecal.calibration.predictions import read_answers
from tracecal.io.files import write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    seed, resamples, level = params.bootstrap
    files = zip(inputs.labels, inputs.questions, inputs.scores, inputs.features, strict=True)
    answers = pl.concat(
        read_answers(*paths).with_columns(task=pl.lit(task))
        for (_, task), paths in zip(params.pairs, files, strict=True)
    )
    metrics, resampled = measure_on_targets(
        answers,
        read_splits(inputs.splits, params.pairs),
        model=params.studies["main"]["model"],
        estimators=params.estimators,
        baselines=params.baselines,
        method=params.method,
        ece_bins=params.ece_bins,
        seed=seed,
        resamples=resamples,
    )
    gained = gains(averages(metrics, params.studies), params.baselines, params.named)
    bounded = improvements(gained, resampled, params.named, params.studies, level)
    write_parquet(metrics, snakemake.output.metrics)
    write_parquet(bounded, snakemake.output.improvements)
