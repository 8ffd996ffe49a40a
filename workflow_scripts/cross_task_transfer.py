"""Calibrate on the main study's other tasks and measure on each."""

import polars as pl

from trace_job import job
from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.cross_task_transfer import measure_on_targets
from trace_workflow.analyses.gains import gains
from trace_workflow.analyses.improvements import improvements
from trace_workflow.analyses.labelled_answers import read_labelled_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    seed, resamples, level = params.bootstrap
    files = StudyFiles(dict(inputs.items()), params.pairs)
    answers = pl.concat(
        read_labelled_answers(*paths.values()).with_columns(task=pl.lit(task))
        for _, task, paths in files.by_pair("labels", "questions", "scores", "features")
    )
    metrics, resampled = measure_on_targets(
        answers,
        files.splits(),
        model=params.studies["main"]["model"],
        estimators=params.estimators,
        baselines=params.baselines,
        method=params.method,
        ece_bins=params.ece_bins,
        seed=seed,
        resamples=resamples,
    )
    gain_rows = gains(averages(metrics, params.studies), params.baselines, params.named_baseline)
    rows = improvements(gain_rows, resampled, params.named_baseline, params.studies, level)
    write_parquet(metrics, snakemake.output.metrics)
    write_parquet(rows, snakemake.output.improvements)
