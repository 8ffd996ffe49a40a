"""Calibrate and measure the main study's answers at several calibration sizes."""

import polars as pl

from tracecal.analyse.averages import averages
from tracecal.analyse.calibration_size import SIZES, metrics_by_size
from tracecal.calibrate.answers import read_answers
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    answers = map(read_answers, inputs.labels, inputs.tasks, inputs.scores, inputs.features)
    frames = [
        metrics_by_size(
            judged,
            read_parquet(splits, ["example_id", "split", "rank"]),
            model=model,
            task=task,
            estimators=params.estimators,
            method=params.method,
            ece_bins=params.ece_bins,
            share=params.share,
        )
        for (model, task), judged, splits in zip(params.pairs, answers, inputs.splits, strict=True)
    ]
    sizes = pl.concat([pl.DataFrame(schema=SIZES), *frames])
    write_parquet(sizes, snakemake.output.metrics)
    means = averages(sizes, params.studies, by=["calibration_share"])
    write_parquet(means, snakemake.output.averages)
