"""Calibrate and measure the main study's answers at several calibration sizes."""

import polars as pl

from tracecal.analyse.calibration_size import SIZES, metrics_by_size
from tracecal.calibrate.answers import read_answers
from tracecal.files import read_parquet, write_parquet
from tracecal.job import job

with job(snakemake.log[0]):
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
    write_parquet(pl.concat([pl.DataFrame(schema=SIZES), *frames]), snakemake.output[0])
