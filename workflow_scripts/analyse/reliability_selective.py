"""Measure the main study's predictions pooled over its tasks."""

import polars as pl

from tracecal.analyse.averages import over_splits
from tracecal.analyse.pairs import read_pairs
from tracecal.analyse.reliability_selective import reliability
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    predicted = ["estimator", "split", "example_id", "probability"]
    predictions = read_pairs(inputs.predictions, params.pairs, predicted)
    labels = read_pairs(inputs.labels, params.pairs, ["example_id", "correct"])
    judged = predictions.filter(pl.col("estimator").is_in(params.estimators)).join(
        labels, on=["model", "task", "example_id"], how="left", validate="m:1"
    )
    measured = reliability(judged, params.estimators, params.ece_bins)
    for name, frame in measured._asdict().items():
        write_parquet(frame, snakemake.output[name])
    means = over_splits(measured.pooled, ["model", "tasks", "estimator", "metric"])
    write_parquet(means, snakemake.output.averages)
