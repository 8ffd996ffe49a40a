"""Add its risk-control thresholds to the calibrator of the default fit, or else of TRACE+."""

from trace_workflow.jobs.job import job
from tracecal.calibration.guarantees.control import control_error_rates
from tracecal.calibration.pooled import PART_FEATURE, part_codes
from tracecal.calibrator.schema import CalibratorFile, ErrorRateControl
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_json, read_parquet, write_checked

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    file = CalibratorFile.parse(read_json(inputs.calibrators), inputs.calibrators)
    estimator = file.recommended()
    # A run may leave out both.
    if estimator in file.estimators:
        answers = evaluated(read_parquet(inputs.labels, ["example_id", "correct"]), inputs.task)
        features = read_parquet(inputs.features, needed=["example_id"])
        groups = read_parquet(inputs.task, needed=["example_id", "group_id"])
        if names := params.get("part_names"):
            codes = part_codes(groups, names, PART_FEATURE)
            features = features.join(codes, on="example_id", validate="1:1")
        splits = read_parquet(inputs.splits, ["example_id", "split", "rank", "part"])
        control = control_error_rates(
            estimator,
            file.estimators[estimator],
            answers.join(features, on="example_id", how="left", validate="1:1"),
            splits.filter(split=splits["split"].min()),
            params.error_rates,
            params.confidence,
            # A task that declares no groups gives each example a group of its own name.
            ungrouped=(groups["group_id"] == groups["example_id"]).all(),
            largest_group=params.largest_group,
        )
        file = file.with_keys(estimator, risk_control=ErrorRateControl.model_validate(control))
    write_checked(file.text(), snakemake.output[0])
