"""Findings on single answers: the order of their tokens and the place of their risk."""

import polars as pl

from trace_workflow.tables.finding import Finding, Topic
from trace_workflow.tables.study_results import StudyResults, rows_by

POSITION = Topic(
    "position",
    "position_shift",
    "Shuffling an answer's tokens {verdict} the AUROC of TRACE: {original:.3f} in order, "
    "{shifted:.3f} shuffled.",
)
LOCALISATION = Topic(
    "localisation",
    "localisation",
    "In {n} partly wrong answers of {model} ({task}), these point at a wrong part: {shares} of the "
    "time.",
)
POINTERS = {
    "failing_name": "the part that usually fails",
    "window": "the window of peak risk",
    "random_part": "a random part",
    "random_window": "a random window",
}


def find_position_effect(shift: pl.DataFrame) -> list[Finding]:
    """Whether TRACE ranks better with tokens in their order than in random orders."""
    averages = shift.filter(pl.col("task").is_null())
    by_quantity = rows_by(averages.filter(over="draw"), "quantity")
    original = averages.filter(quantity="original")["mean"].to_list()
    difference = by_quantity.get(("difference",))
    if difference is None or not original or None in (difference["mean"], original[0]):
        return []
    clear = difference["sd"] is not None and abs(difference["mean"]) > 2 * difference["sd"]
    changed = "lowers" if difference["mean"] < 0 else "raises"
    verdict = changed if clear else "does not measurably change"
    shifted = by_quantity["shifted",]["mean"]
    return [POSITION.finding(verdict=verdict, original=original[0], shifted=shifted)]


def find_localisation(localisation: pl.DataFrame, study: StudyResults) -> list[Finding]:
    """How often the window of peak risk lies in a wrong part, beside pointers that ignore risk.

    Pair by pair, the best pointer first.
    """
    pairs = localisation.select("model", "task").unique(maintain_order=True)
    findings = []
    for pair in pairs.iter_rows(named=True):
        rows = rows_by(localisation.filter(**pair), "pointer")
        peak = rows["window",]
        if peak["value"] is None or peak["low"] is None:
            continue
        ends = f" ({100 * peak['level']:g}% interval {peak['low']:.0%} to {peak['high']:.0%})"
        shares = [
            f"{POINTERS[name]} {rows[name,]['value']:.0%}" + ends * (name == "window")
            for name in sorted(POINTERS, key=lambda name: -(rows[name,]["value"] or 0))
            if rows[name,]["value"] is not None
        ]
        findings.append(
            LOCALISATION.finding(
                n=peak["pointed"],
                model=study.models[pair["model"]],
                task=study.tasks[pair["task"]],
                shares=", ".join(shares),
            )
        )
    return findings
