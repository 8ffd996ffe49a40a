"""Fitting calibrators on a file of labelled answers, by the workflow's protocol."""

import polars as pl

from tracecal.calibrate.fitted_on import FittedOn
from tracecal.calibrate.predict import calibrate_all
from tracecal.calibrate.risk_control import risk_control
from tracecal.calibrate.splits import make_splits
from tracecal.config.calibration import Calibration, RiskControl, Splits
from tracecal.errors import InputError
from tracecal.logs.record import entropy_kind
from tracecal.outside.inputs import inputs
from tracecal.progress import LOGGER
from tracecal.registry import ESTIMATORS
from tracecal.schema import Strict

FEWEST = 20


class Fitting(Strict):
    """How a calibrator is fitted; the keys are the configuration's own."""

    seed: int = 2026
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()


def calibrate_answers(
    answers: pl.DataFrame,
    task: str,
    fitting: Fitting,
    revision: str | None = None,
    vocabulary: int | None = None,
) -> dict[str, object]:
    """The calibrators of all estimators that need only a trace, as plain JSON.

    `answers` has the columns of `RECORDS`; answers without a label are left out. Raises
    `InputError` where too few remain, or where they mix models or kinds of trace.
    """
    labelled = answers.filter(pl.col("correct").is_not_null()).sort("example_id")
    if labelled.height < FEWEST:
        raise InputError(
            f"{labelled.height} of {answers.height} answers say whether they are right; at least "
            f"{FEWEST} are needed. Add a column 'correct', or give its path with --label."
        )
    known = inputs(labelled)
    frame = labelled.select("example_id", "correct").join(known, on="example_id", validate="1:1")
    chosen = _computable(frame, labelled)
    groups = labelled.select("example_id", group_id=pl.coalesce("group_id", "example_id"))
    count, share = fitting.splits.count, fitting.splits.calibration_share
    splits = make_splits(groups, task, fitting.seed, count, share)
    uncalibrated = [entry.id for entry in ESTIMATORS if entry.id in chosen and not entry.calibrated]
    method = fitting.calibration.method
    _, calibrators = calibrate_all(frame, splits, chosen, method, uncalibrated)
    first = splits.filter(pl.col("split") == 0)
    rates, confidence = fitting.risk_control.error_rates, fitting.risk_control.confidence
    for name, columns in chosen.items():
        values = {column.split(".", 1)[1]: column for column in columns}
        rows = frame.select("example_id", "correct", **values)
        control = risk_control(calibrators[name], rows, first, rates, confidence)
        calibrators[name]["risk_control"] = control
    fitted_on = FittedOn(
        model=_one(labelled, "model", "models"),
        revision=revision,
        task=task,
        stop_token=_one(labelled.filter(pl.col("stop_token") != "none"), "stop_token", "kinds")
        or "none",
        processed=_one(labelled, "processed", "kinds") or "unknown",
        entropy=entropy_kind(labelled),
        vocabulary=vocabulary,
        n=labelled.height,
        base_rate=float(labelled["correct"].mean()),
    )
    return {"fitted_on": fitted_on.model_dump(mode="json"), **calibrators}


def _computable(frame: pl.DataFrame, labelled: pl.DataFrame) -> dict[str, list[str]]:
    """The estimators that can be computed for enough answers, and their inputs."""
    known = set(frame.columns)
    of_traces = {entry.id: entry.inputs for entry in ESTIMATORS if known.issuperset(entry.inputs)}
    usable = {
        name: frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()
        for name, columns in of_traces.items()
    }
    left_out = [name for name, count in usable.items() if count < FEWEST]
    if left_out:
        reasons = labelled["lacks"].drop_nulls().unique().sort().to_list() or ["undefined"]
        LOGGER.warning("%s left out: %s", ", ".join(left_out), "; ".join(reasons[:3]))
    if len(left_out) == len(of_traces):
        raise InputError("no answer has log-probabilities: there is nothing to calibrate.")
    return {name: columns for name, columns in of_traces.items() if name not in left_out}


def _one(answers: pl.DataFrame, column: str, kinds: str) -> str | None:
    """The only value of a column; null where it has none. Raises `InputError` for several."""
    values = answers[column].drop_nulls().unique().sort().to_list()
    if len(values) > 1:
        raise InputError(
            f"the answers are of several {kinds} ({column}: {', '.join(values)}), but a calibrator "
            f"is for one. Split the file, or set one with --{column.replace('_', '-')}."
        )
    return values[0] if values else None
