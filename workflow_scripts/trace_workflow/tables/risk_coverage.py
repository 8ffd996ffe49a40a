"""Thresholds that guarantee the error rate of the kept answers, for each pair."""

from collections.abc import Sequence

import polars as pl

from trace_workflow.tables.standing_notes import missing_answers
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import ABSENT, Column, Table, format_number
from trace_workflow.tables.wording import join_names

NONE = "none"
QUANTITIES = ("threshold", "coverage", "kept", "wrong", "allowed", "enough", "reason")


def table(study: StudyResults) -> Table:
    """From `risk_coverage` and `accuracy`: a row per model and task, QUANTITIES for each rate.

    Rates without a guarantee in any row stand in the CSV and a note alone, unless all lack one.
    """
    thresholds = study.frames["risk_coverage"]
    rates = sorted(set(thresholds["error_rate"]))
    guaranteed = set(thresholds.drop_nulls("threshold")["error_rate"])
    printed_rates = sorted(guaranteed) or rates
    error = (1 - pl.col("accuracy")).alias("error_of_all")
    errors = study.frames["accuracy"].select("model", "task", error)
    frame = thresholds.select("model", "task", "ranked_by", "groups", "n").unique()
    frame = frame.join(errors, on=["model", "task"], how="left")
    for rate in rates:
        columns = [pl.col(name).alias(f"{name}_{rate:g}") for name in QUANTITIES]
        at_rate = thresholds.filter(error_rate=rate).select("model", "task", *columns)
        frame = frame.join(at_rate, on=["model", "task"])
    frame = frame.with_columns(task_label=pl.col("task").replace_strict(study.tasks))
    return Table(
        frame=frame.sort(study.model_order, "task").select(
            *("model", "task", "task_label", "ranked_by", "groups", "n", "error_of_all"),
            *(f"{name}_{rate:g}" for rate in rates for name in QUANTITIES),
        ),
        columns=(
            Column(("task_label",), "Task", align="left"),
            Column(("groups",), "Groups"),
            Column(("n",), "n"),
            Column(("error_of_all",), "Error of all"),
            *(column for rate in printed_rates for column in _columns(rate)),
        ),
        section=pl.col("model"),
        titles=study.models,
        footnotes=_footnotes(thresholds, rates, printed_rates),
        notes=tuple(missing_answers(study.accuracies, study)),
    )


def _columns(rate: float) -> tuple[Column, ...]:
    group = f"Error rate ≤ {rate:g}"
    names = {name: f"{name}_{rate:g}" for name in QUANTITIES}
    enough = pl.format(f"{NONE} ({{}})", names["enough"]).fill_null(pl.lit(NONE))
    threshold = pl.col(names["threshold"])
    text = threshold.map_elements(lambda value: format_number(value, 3), return_dtype=pl.String)
    printed = pl.when(threshold.is_null()).then(enough).otherwise(text)
    # Their ratio is no estimate, as these answers chose the threshold.
    wrong = pl.format("{}/{}", names["wrong"], names["kept"])
    counts = pl.when(pl.col(names["kept"]) > 0).then(wrong)
    return (
        Column((names["threshold"],), "Threshold", group, printed=printed),
        Column((names["coverage"],), "Coverage", group),
        Column((names["wrong"],), "Wrong", group, printed=counts, added=True),
    )


def _footnotes(
    thresholds: pl.DataFrame, rates: Sequence[float], printed_rates: Sequence[float]
) -> tuple[str, ...]:
    notes = []
    if missing := [f"{rate:g}" for rate in rates if rate not in printed_rates]:
        notes.append(f"No threshold guarantees an error rate of {join_names(missing)} anywhere.")
    printed = thresholds.filter(pl.col("error_rate").is_in(printed_rates))
    if printed["threshold"].null_count():
        notes.append(
            f"{NONE} (m): no threshold guarantees this rate with these answers; m groups like "
            "them would suffice (no m: not even 14 times as many). The CSV says why. "
            f"{ABSENT}: nothing kept."
        )
    return tuple(notes)
