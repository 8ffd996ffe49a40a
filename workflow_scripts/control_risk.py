"""Add to calibrators what they were fitted on, and to TRACE+'s its risk-control thresholds."""

from trace_workflow.jobs.job import job
from tracecal.calibration.few_labels import PART_FEATURE, part_codes
from tracecal.calibration.risk_control import control_risk
from tracecal.calibrator.schema import fitted_on
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_json, read_parquet, write_json
from tracecal.io.traces import arrow_metadata

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    calibrators = read_json(inputs.calibrators)
    labels = read_parquet(inputs.labels, ["example_id", "correct"])
    answers = evaluated(labels, inputs.task)
    # A run may leave out TRACE+.
    if "trace_plus" in calibrators:
        features = read_parquet(inputs.features, needed=["example_id"])
        groups = read_parquet(inputs.task, needed=["example_id", "group_id"])
        if names := params.get("part_names"):
            codes = part_codes(groups, names, PART_FEATURE)
            features = features.join(codes, on="example_id", validate="1:1")
        calibrators["trace_plus"]["risk_control"] = control_risk(
            calibrators["trace_plus"],
            answers.join(features, on="example_id", how="left", validate="1:1"),
            read_parquet(inputs.splits, ["example_id", "split", "rank", "part"]),
            params.error_rates,
            params.confidence,
            # A task that declares no groups gives each example a group of its own name.
            ungrouped=(groups["group_id"] == groups["example_id"]).all(),
            largest_group=params.largest_group,
        )
    description = fitted_on(
        arrow_metadata(inputs.traces),
        answers["correct"],
        model=snakemake.wildcards.model,
        known_as=params.known_as,
        task=snakemake.wildcards.task,
    )
    write_json({"fitted_on": description, **calibrators}, snakemake.output[0])
