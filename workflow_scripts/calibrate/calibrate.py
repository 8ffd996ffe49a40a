"""Calibrate every estimator on every split and predict the evaluation parts."""

from tracecal.calibrate.answers import read_answers
from tracecal.calibrate.predict import calibrate_all
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_json, write_parquet

with job(snakemake):
    inputs = snakemake.input
    predictions, calibrators = calibrate_all(
        read_answers(inputs.labels, inputs.task, inputs.scores, inputs.features),
        read_parquet(inputs.splits, ["example_id", "split", "part"]),
        snakemake.params.estimators,
        snakemake.params.method,
        snakemake.params.uncalibrated,
    )
    write_parquet(predictions, snakemake.output.predictions)
    write_json(calibrators, snakemake.output.calibrators)
