"""Calibrate every estimator on every split, predict the evaluation parts and pick a baseline."""

from trace_job import job
from trace_workflow.analyses.labelled_answers import read_labelled_answers
from tracecal.calibrator.schema import CalibratedEstimator, CalibratorFile
from tracecal.calibrator.trace_kinds import describe_traces
from tracecal.fits.pooled import by_part, part_codes
from tracecal.fits.predictions import calibrate_all, pick_baselines, with_picked
from tracecal.io.files import read_parquet, write_checked, write_parquet
from tracecal.io.traces import arrow_metadata

with job(snakemake):
    inputs, params, wildcards = snakemake.input, snakemake.params, snakemake.wildcards
    answers = read_labelled_answers(inputs.labels, inputs.task, inputs.scores, inputs.features)
    splits = read_parquet(inputs.splits, ["example_id", "split", "rank", "part"])
    estimators, own_fits, names = params.estimators, params.own_fits, params.get("part_names", [])
    if names:
        codes = part_codes(read_parquet(inputs.task, ["example_id", "part"]), names)
        answers = answers.join(codes, on="example_id", how="left", validate="1:1")
        estimators, own_fits = by_part(estimators, own_fits)
    predictions, fits = calibrate_all(
        answers, splits, estimators, params.method, own_fits, part_names=names
    )
    picked = pick_baselines(answers, splits, estimators, fits, params.baselines)
    write_parquet(with_picked(predictions, picked), snakemake.output.predictions)
    write_parquet(picked, snakemake.output.picked)
    metadata = arrow_metadata(inputs.traces)
    fitted_on = describe_traces(
        metadata, answers["correct"], wildcards.model, params.known_as, wildcards.task
    )
    calibrated = {name: CalibratedEstimator(**dict(fit)) for name, fit in fits.items()}
    write_checked(CalibratorFile.of(fitted_on, calibrated).text(), snakemake.output.calibrators)
