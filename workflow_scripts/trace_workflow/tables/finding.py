"""A finding: a sentence, with the table that has its details; a comparison has its numbers, too."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from tracecal.estimators.estimator import TRACE_PLUS

Outcome = Literal["won", "tied", "lost"]
OUTCOMES: tuple[Outcome, ...] = ("won", "tied", "lost")
METRIC_WORDS = {"auroc": ("AUROC", "higher"), "brier": ("Brier score", "lower")}
OPPOSITES = {"higher": "lower", "lower": "higher"}


TEXTS = ("topic", "sentence", "table", "outcome", "estimator", "estimator_label")
TEXTS += ("model", "task", "task_label", "metric", "against", "baseline")
NUMBERS = ("value", "reference", "difference", "low", "high", "level")
SCHEMA = dict.fromkeys(TEXTS, pl.String) | dict.fromkeys(NUMBERS, pl.Float64)


class Finding(namedtuple("Finding", SCHEMA, defaults=[None] * (len(SCHEMA) - 3))):
    """A sentence on a `topic`, and the table that has its details.

    A comparison of an `estimator` has an `outcome`, None without an interval, and its numbers: a
    positive `difference` is in favour of the estimator.
    """


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """A row per finding, in their order."""
    return pl.DataFrame([finding._asdict() for finding in findings], schema=SCHEMA)


def compare(
    row: Mapping, sides: tuple[str, str], where: str = "", confirming: Mapping | None = None
) -> Finding:
    """The finding of a `row` of Finding's fields: how the first of two `sides` compares.

    `where` begins the sentence. `confirming`, the row of another metric, must agree on a win.
    """
    (metric, better), (first, second) = METRIC_WORDS[row["metric"]], sides
    outcome, numbers = None, ""
    if row["difference"] is not None:
        outcome = outcome_of(row["low"], row["high"])
        numbers = f"{row['value']:.3f} and {row['reference']:.3f}, {_difference(row)}"
    if confirming is not None and outcome and confirming["difference"] is not None:
        confirmed = outcome_of(confirming["low"], confirming["high"])
        # A win needs both metrics. So does a loss against TRACE+, where one's loss is the other's
        # win; against a baseline either loses.
        if None in (outcome, confirmed):
            outcome = None
        elif outcome != confirmed:
            is_lost = row["against"] != TRACE_PLUS and "lost" in (outcome, confirmed)
            outcome = "lost" if is_lost else "tied"
        numbers += f"; of calibrated probabilities {_difference(confirming)}"
    verdict = {
        "won": f"{first} has a {better} {metric} than {second} ({numbers}).",
        "tied": f"{first} ties in {metric} with {second} ({numbers}).",
        "lost": f"{first} has a {OPPOSITES[better]} {metric} than {second} ({numbers}).",
        None: f"{first} has no interval, so no verdict, in {metric} against {second} ({numbers}).",
    }[outcome]
    if not numbers:
        verdict = f"{first} cannot be compared with {second}: no {metric} on some task."
    fields = {name: row[name] for name in Finding._fields if name in row}
    fields |= {"sentence": f"{where}{verdict}", "outcome": outcome, "estimator_label": first}
    return Finding("comparison", **fields)


def outcome_of(low: float | None, high: float | None) -> Outcome | None:
    """Whether a difference is won, tied or lost by its interval; None without one.

    >>> outcome_of(0.1, 0.2), outcome_of(-0.1, 0.2), outcome_of(None, None)
    ('won', 'tied', None)
    """
    if low is None or high is None:
        return None
    return "tied" if low <= 0 <= high else "won" if low > 0 else "lost"


def _difference(row: Mapping) -> str:
    """The advantage, with its interval where it has one."""
    difference = f"{abs(row['difference']):.3f} {'better' if row['difference'] > 0 else 'worse'}"
    if row["low"] is None:
        return difference
    return (
        f"{difference}, {100 * row['level']:g} % interval {row['low']:+.3f} to {row['high']:+.3f}"
    )
