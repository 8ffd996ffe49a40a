"""Add guarantees to a calibrator: ranked by its default fit or TRACE+."""

from trace_job import job
from trace_workflow.analyses.labelled_answers import read_labelled_answers, with_representatives
from tracecal.calibration.guarantees.ranked_answers import control_error_rates
from tracecal.calibration.pooled import PART_FEATURE, part_codes
from tracecal.calibrator.catalogue import INPUTS
from tracecal.calibrator.schema import CalibratorFile, ErrorRateControl
from tracecal.io.files import read_json, read_parquet, write_checked
from tracecal.io.traces import read_traces

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    file = CalibratorFile.parse(read_json(inputs.calibrators), inputs.calibrators)
    estimator = file.recommended()
    # A run may leave it out.
    if estimator in file.estimators:
        answers = read_labelled_answers(inputs.labels, inputs.task, inputs.scores, inputs.features)
        columns = {name.split(".", 1)[1]: name for name in INPUTS[estimator]}
        answers = answers.select("example_id", "correct", **columns)
        rows = read_parquet(inputs.task, needed=["example_id", "group_id"])
        traces = read_traces(inputs.traces, ["example_id", "prompt", "answer", "surprisal"])
        answers = with_representatives(answers, rows, traces)
        if names := params.get("part_names"):
            codes = part_codes(rows, names, PART_FEATURE)
            answers = answers.join(codes, on="example_id", validate="1:1")
        splits = read_parquet(inputs.splits, ["example_id", "split", "rank", "part"])
        control = control_error_rates(
            estimator,
            file.estimators[estimator],
            answers,
            splits.filter(split=splits["split"].min()),
            params.error_rates,
            params.confidence,
            params.overall_errors,
        )
        file = file.with_keys(estimator, risk_control=ErrorRateControl.model_validate(control))
    write_checked(file.text(), snakemake.output[0])
