"""Calibrate every estimator on every split, predict the evaluation parts and pick a baseline."""

from trace_workflow.jobs.job import job
from tracecal.calibration.few_labels import by_part, part_codes
from tracecal.calibration.predictions import calibrate_all, picks, read_answers, with_picked
from tracecal.io.files import read_parquet, write_json, write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    answers = read_answers(inputs.labels, inputs.task, inputs.scores, inputs.features)
    splits = read_parquet(inputs.splits, ["example_id", "split", "rank", "part"])
    estimators, fits, names = params.estimators, params.own_fits, params.get("part_names", [])
    if names:
        codes = part_codes(read_parquet(inputs.task, ["example_id", "part"]), names)
        answers = answers.join(codes, on="example_id", how="left", validate="1:1")
        estimators, fits = by_part(estimators, fits)
    predictions, calibrators = calibrate_all(
        answers, splits, estimators, params.method, fits, part_names=names
    )
    picked = picks(answers, splits, estimators, calibrators, params.baselines)
    write_parquet(with_picked(predictions, picked), snakemake.output.predictions)
    write_json(calibrators, snakemake.output.calibrators)
    write_parquet(picked, snakemake.output.picked)
