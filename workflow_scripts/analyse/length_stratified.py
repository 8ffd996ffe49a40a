"""Measure the main study's predictions on short, medium and long answers."""

import polars as pl

from tracecal.analyse.averages import averages
from tracecal.analyse.length_stratified import STRATIFIED, metrics_by_length
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    files = zip(inputs.predictions, inputs.labels, inputs.scores, inputs.features, strict=True)
    frames = [
        metrics_by_length(
            read_parquet(predictions, ["estimator", "split", "example_id", "probability"]),
            read_parquet(labels, ["example_id", "correct"]).select("example_id", "correct"),
            read_parquet(scores, ["example_id"]),
            read_parquet(features, ["example_id", "length"]),
            model=model,
            task=task,
            estimators=params.estimators,
            ece_bins=params.ece_bins,
        )
        for (model, task), (predictions, labels, scores, features) in zip(
            params.pairs, files, strict=True
        )
    ]
    strata = pl.concat([pl.DataFrame(schema=STRATIFIED), *frames])
    write_parquet(strata, snakemake.output.metrics)
    means = averages(strata, params.studies, by=["stratum"])
    write_parquet(means, snakemake.output.averages)
