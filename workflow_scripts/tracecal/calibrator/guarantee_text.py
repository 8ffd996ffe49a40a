"""Guaranteed error rates in words, for the report and the card."""

from collections.abc import Sequence

import polars as pl

from tracecal.calibrator.catalogue import FIXED_SCORE, LABELS
from tracecal.calibrator.decision import WIDTH
from tracecal.calibrator.predictor import Target
from tracecal.calibrator.schema import (
    CalibrationData,
    ErrorRateControl,
    ErrorRateThreshold,
    OverallThreshold,
)
from tracecal.guarantees.line import significance_level
from tracecal.guarantees.part_tests import PARTS_NEED
from tracecal.statistics.percentages import confidence_text, percent, rate_text

USUAL_RATE, USUAL_OVERALL = 0.2, 0.1  # the rates of the decision by default
WITHOUT = "not with these labels"
TOGETHER = {1: "both", 2: "all three"}
IS_LOTTERY = (
    "Those left unchecked are about as often wrong as the others: the ranking does not help here."
)
SHOWN_VALUES = 3  # of a column with more errors than guaranteed; the card lists all
GUARANTEES = {
    "error_rate": pl.Float64,
    "threshold": pl.Float64,
    "coverage": pl.Float64,
    "error": pl.Float64,
    "enough": pl.Int64,
}


def guarantee_table(control: ErrorRateControl) -> pl.DataFrame:
    """Columns of `GUARANTEES`, a row per target error rate."""
    rows = [
        {name: getattr(entry, name) for name in GUARANTEES}
        | ({"coverage": None} if entry.threshold is None else {})
        for entry in control.thresholds
    ]
    return pl.DataFrame(rows, schema=GUARANTEES)


def guarantee_line(entry: ErrorRateThreshold) -> str:
    """What is guaranteed at an error rate, in a sentence."""
    target = f"at most {rate_text(entry.error_rate)} wrong:"
    if entry.threshold is None:
        return f"{target} cannot be guaranteed"
    coverage, observed = percent(entry.coverage), percent(entry.error, 1)
    return f"{target} keeps {coverage} of the answers ({observed} observed)"


def decided_rate(
    thresholds: Sequence[ErrorRateThreshold], requested: Sequence[float]
) -> ErrorRateThreshold | None:
    """The error rate of the decision: the first `requested` one, by default USUAL_RATE.

    Rates that are asked for are tested. If USUAL_RATE was not (with `--config`), the nearest tested
    rate is returned; None if no rate was tested.
    """
    target = requested[0] if requested else USUAL_RATE
    distances = {(abs(entry.error_rate - target), entry.error_rate): entry for entry in thresholds}
    return distances[min(distances)] if distances else None


def headline(
    entry: ErrorRateThreshold, confidence: float, base_rate: float, n_to_ask: int | None = None
) -> str:
    """Say what is guaranteed at an error rate, or how many labels may be enough.

    `n_to_ask` are labels that 'tracecal label' would ask for, instead of random ones.
    """
    rate = rate_text(entry.error_rate)
    if entry.threshold is None:
        joint = ", or" if entry.enough else ";"
        asking = (
            f"{joint} about {n_to_ask:,} more that 'tracecal label' asks for" if n_to_ask else ""
        )
        return (
            f"Do not keep answers by these probabilities yet: at most {rate} wrong is "
            f"not guaranteed with these labels{_forecast(entry)}{asking}."
        )
    share = "all" if entry.coverage == 1 else f"about {percent(entry.coverage)} of"
    already = ""
    if 0 < 1 - base_rate <= entry.error_rate:
        already = (
            f" Of all labelled answers only {percent(1 - base_rate)} are wrong: ask for a smaller "
            "rate to drop more."
        )
    return (
        f"Keep {share} answers like these: at most {rate} of those kept are wrong "
        f"{confidence_text(confidence)}.{already}"
    )


def other_rates(
    thresholds: Sequence[ErrorRateThreshold],
    decided: ErrorRateThreshold,
    base_rate: float,
    requested: Sequence[float],
) -> str | None:
    """Say what is guaranteed at other error rates than the `decided` one; None without any.

    Rates that nobody asked for are shown where they are below the share of wrong answers, as far as
    a line allows: stricter ones if the decided one is guaranteed, and else laxer ones.
    """
    items: list[str] = []
    for entry in sorted(thresholds, key=lambda entry: abs(entry.error_rate - decided.error_rate)):
        is_stricter = entry.error_rate < decided.error_rate
        is_shown = entry.error_rate in requested or entry.error_rate < 1 - base_rate
        if not requested and is_stricter != (decided.threshold is not None):
            continue
        if not is_shown or entry.error_rate == decided.error_rate:
            continue
        share = "all" if entry.coverage == 1 else percent(entry.coverage)
        what = f"{WITHOUT}{_forecast(entry)}" if entry.threshold is None else f"keep {share}"
        item = f"at {rate_text(entry.error_rate)}: {what}"
        if not requested and len("      ".join([*items, item])) > WIDTH - 2:
            break
        items.append(item)
    return "      ".join(items) or None


def _forecast(entry: ErrorRateThreshold) -> str:
    return f"; about {entry.enough:,} may be enough" if entry.enough else ""


def describe_terms(control: ErrorRateControl) -> str:
    """Describe the guarantees' confidence, single and joint, and the groups that they cover."""
    terms = f"each by itself {confidence_text(control.confidence)}"
    if control.joint_confidence is not None and len(control.thresholds) > 1:
        together = control.at_once(control.joint_confidence)
        terms += f", all of them together {confidence_text(together)}"
    if control.most_parts is not None:
        terms += f"; parts of answers with more than {control.most_parts} are never kept"
    return terms


def describe_chance(control: ErrorRateControl) -> str:
    """Say what the confidence of a guarantee is about."""
    level = significance_level(control.confidence)
    share = "one sample of labels in ten" if level == 0.1 else f"{percent(level)} of all samples"
    verb = "leads" if level == 0.1 else "lead"
    return f"At most {share} {verb} to a false guarantee."


def describe_looks(control: ErrorRateControl, data: CalibrationData) -> str | None:
    """Say what several looks at growing labels, or planned ones, mean for the confidence."""
    number, planned = len(data.looks), data.planned_looks
    if number == 1 and planned in (None, 1):
        return None
    of_planned = f" of {planned} planned" if planned else ""
    sentence = f"Look {number}{of_planned}: {percent(control.confidence, 1)} for this look alone"
    if number > 1:
        sentence += (
            f"; at least {percent(control.stated_confidence, 1)} that no guarantee of the "
            f"{number} looks is false"
        )
    return f"{sentence}."


def describe_ranking(control: ErrorRateControl, n_kept: int, n_others: int) -> str:
    """Describe the ranking, and how many other answers the probabilities would keep."""
    label = LABELS[control.ranked_by]
    if control.ranked_by == FIXED_SCORE:
        how = f"{label}, which no label has fitted"
    else:
        how = f"{label}, fitted on labels that test nothing"
    ranking = (
        f"Answers to keep are ranked by {how}; the probabilities shown are fitted on all labels"
    )
    if not n_others:
        return f"{ranking}, and the {n_kept} most probable answers are kept"
    return f"{ranking}, so that {n_others} of the {n_kept} most probable answers are not kept"


def describe_recall(control: ErrorRateControl) -> str | None:
    """Describe the guarantee of the recall; None without one."""
    if (recall := control.recall) is None:
        return None
    target = f"At least {percent(recall.recall)} of the right answers are kept"
    if recall.threshold is None:
        return f"{target}: {WITHOUT} ({recall.reason})."
    return f"{target} where {percent(recall.coverage)} of all are (--recall {recall.recall:g})."


def chosen_overall(
    control: ErrorRateControl, requested: Sequence[float] = ()
) -> OverallThreshold | None:
    """The overall error rate of the decision: the first `requested` one, or the usual one.

    None where none was tested.
    """
    target = requested[0] if requested else USUAL_OVERALL
    return min(control.overall, key=lambda entry: abs(entry.error_rate - target), default=None)


def describe_overall(
    control: ErrorRateControl, base_rate: float, requested: Sequence[float] = ()
) -> list[str]:
    """Say how much people must check for each overall error rate, a sentence each.

    `base_rate` is the share of right answers.
    """
    if (entry := chosen_overall(control, requested)) is None:
        return []
    rate = rate_text(entry.error_rate)
    further = _other_overall(control, entry)
    if entry.threshold is None:
        return [f"How much people must check for at most {rate} wrong: {entry.reason}.", *further]
    confidence = confidence_text(control.stated_confidence)
    then = f"of all answers at most {rate} are then wrong {confidence}."
    if entry.coverage == 0:
        return [f"Let people check all answers and mend what is wrong: {then}", *further]
    if entry.coverage == 1:
        return [f"People need not check any answer: {then.replace(' then', '')}", *further]
    lottery = [IS_LOTTERY] if entry.is_lottery else []
    return [
        *lottery,
        f"Let people check the {percent(1 - entry.coverage)} least certain answers and mend what "
        f"is wrong: {then}",
        *further,
        f"{describe_unchecked(entry)} {describe_overlooked(base_rate)}",
    ]


def describe_target(control: ErrorRateControl | None, target: Target | None) -> str | None:
    """Say what an overall error rate means where answers are kept at it; None of other targets."""
    entry = None if control is None or target is None else control.targets.get(target)
    if not isinstance(entry, OverallThreshold) or not entry.coverage:
        return None
    return (
        "if people check all answers that are not kept and mend what is wrong, at most "
        f"{rate_text(entry.error_rate)} of all are wrong "
        f"{confidence_text(control.stated_confidence)}. {describe_unchecked(entry)}"
    )


def describe_unchecked(entry: OverallThreshold) -> str:
    """Say how many of the answers that nobody checks may be wrong."""
    fraction = f"{100 * entry.error_rate:.6g} / {100 * entry.coverage:.0f}"
    return (
        f"Of those that nobody checks more may be wrong, up to {fraction} = "
        f"{percent(entry.unchecked_rate)}."
    )


def describe_overlooked(base_rate: float) -> str:
    """Say what it costs if people do not mend all that they check."""
    further = percent(0.1 * (1 - base_rate))
    return f"If people overlook a tenth of the errors, up to {further} come on top."


def _other_overall(control: ErrorRateControl, chosen: OverallThreshold) -> list[str]:
    """What to check at the other overall error rates, in a line; none without others."""
    items = [
        f"at {rate_text(entry.error_rate)}: "
        + (WITHOUT if entry.threshold is None else f"check {percent(1 - entry.coverage)}")
        for entry in control.overall
        if entry != chosen
    ]
    if not items:
        return []
    count = TOGETHER.get(len(items), f"all {len(items) + 1}")
    together = percent(control.at_once(control.overall_confidence))
    return [f"  {'      '.join(items)}   ({together} confidence in {count})"]


def describe_errors_by_column(control: ErrorRateControl, error_rate: float) -> str | None:
    """Name the column values with more errors than guaranteed; None without a column."""
    if control.by is None:
        return None
    rows = [row for row in control.by.values if row.error_rate == error_rate]
    if not rows:
        return None
    above = [row for row in rows if row.wrong > error_rate * row.kept]
    scope = f"The guarantee is about all {control.by.column} values together"
    if not above:
        return f"{scope}; none of the {len(rows)} has more wrong of its kept labels."
    worst = sorted(above, key=lambda row: (-row.wrong / row.kept, row.value))[:SHOWN_VALUES]
    listed = "; ".join(
        f"{row.value}: {row.wrong} of {row.kept} ({percent(row.low)} to {percent(row.high)})"
        for row in worst
    )
    return f"{scope}; more are wrong in {len(above)} of {len(rows)}: {listed}."


def describe_missing_answers(control: ErrorRateControl) -> str | None:
    """Say how many unlabelled answers a guarantee of groups needs; None if there are enough."""
    reasons = {entry.reason for entry in control.thresholds if entry.reason}
    missing = [reason for reason in reasons if reason.startswith(PARTS_NEED)]
    if not missing:
        return None
    return f"{missing[0][0].upper()}{missing[0][1:]}: give them with --unlabelled."
