"""Findings on single answers: the place of their risk and the gain of escalation."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.tables.baseline_findings import SELECTED
from trace_workflow.tables.finding import Finding, Topic, format_interval, outcome_of
from trace_workflow.tables.study_results import Labels, StudyResults, rows_by
from tracecal.calibration.cascade import KEYS, select_worthwhile
from tracecal.estimators.estimator import PICKED, TRACE_PLUS

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
CASCADE = Topic(
    "cascade",
    "cascades",
    "Sending the answers that TRACE+ doubts from {small} to {large} gets {words} of them right "
    "than sending them {router} (mean accuracy {gain:+.3f}, {interval}).",
)
POINTERS = {
    "failing_name": "the part that usually fails",
    "window": "the window of peak risk",
    "random_part": "a random part",
    "random_window": "a random window",
}
CASCADE_WORDS = {"won": "more", "tied": "measurably neither more nor fewer", "lost": "fewer"}


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


def find_cascade_gains(analysis: pl.DataFrame, models: Labels) -> list[Finding]:
    """The gain of routing by TRACE+ on random routing and on routing by the selected baseline.

    The pair of models is the pair with the largest gain of the large model.
    """
    means, _ = select_worthwhile(analysis)
    facts = means.filter(pl.col("router").is_null()).pivot("metric", index=KEYS, values="value")
    if means.is_empty() or TRACE_PLUS not in {*means["router"]}:
        return []
    gain = pl.col("large_right") - pl.col("small_right")
    pair = facts.sort(gain, descending=True, maintain_order=True).row(0, named=True)
    rows = means.filter(small=pair["small"], large=pair["large"], metric="area")
    by_router = rows_by(rows, "router")
    if (TRACE_PLUS,) not in by_router:
        return []
    rivals = [(by_router[TRACE_PLUS,], "over_random", "at random")]
    if (PICKED,) in by_router:
        rivals.append((by_router[PICKED,], "trace_plus_over", f"by {SELECTED}"))
    findings = [_cascade_gain(*rival, pair, models) for rival in rivals]
    return [finding for finding in findings if finding]


def _cascade_gain(
    row: Mapping, column: str, router: str, pair: Mapping, models: Labels
) -> Finding | None:
    gain, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    outcome = outcome_of(low, high)
    if gain is None or outcome is None:
        return None
    return CASCADE.finding(
        small=models[pair["small"]],
        large=models[pair["large"]],
        words=CASCADE_WORDS[outcome],
        router=router,
        gain=gain,
        interval=format_interval(row["level"], low, high),
    )
