"""TRACE+ and own scores against baselines: columns and sentences of tables with improvements.

TRACE+ is compared with the selected and the prespecified baseline (CHOSEN), either of which a user
could have chosen, and with the best in hindsight, an oracle.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import polars as pl

from trace_workflow.tables import marks
from trace_workflow.tables.metric_names import BETTER, CLAIMED, METRIC_NAMES, METRICS
from trace_workflow.tables.ranking_table import mark_best_of_row
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import ENDS, Column
from tracecal.estimators.estimator import TRACE_PLUS

BEST, IMPROVEMENT = "best_baseline", "improvement"
BEST_BOLD = "Bold: the better of Best Non-TRACE and TRACE+, unless both print alike."
BASELINE_BOLD = "Bold: the better of the best baseline and TRACE+, unless both print alike."
# The CSV's names of the comparison with the oracle: what tables print, then what the CSV adds.
ORACLE_VALUES = {"reference": BEST, "value": TRACE_PLUS, "difference": IMPROVEMENT}
ORACLE_DETAILS = {
    "baseline": f"{BEST}_id",
    "reference_sd": f"{BEST}_sd",
    "value_sd": f"{TRACE_PLUS}_sd",
    "difference_sd": f"{IMPROVEMENT}_sd",
    "undefined": "undefined_splits",
}
WIN_COUNTS = {name: name for name in ("tasks", "wins")}
# The same for the comparisons with CHOSEN, behind the kind of baseline.
CHOSEN = ("picked", "named")
CHOSEN_VALUES = {
    "baseline": "id",
    "reference": "baseline",
    "difference": IMPROVEMENT,
    "difference_sd": f"{IMPROVEMENT}_sd",
    "low": f"{IMPROVEMENT}_low",
    "high": f"{IMPROVEMENT}_high",
    "wins": "wins",
    "supported_wins": "supported_wins",
}
# What an own score is compared with, and the CSV's names of these comparisons.
OWN_AGAINST = {"picked": "selected", "named": "prespecified", TRACE_PLUS: "TRACE+"}
OWN_VALUES = {name: CHOSEN_VALUES[name] for name in ("difference", "low", "high")}
Improvement = Mapping[str, object]  # a row of the analysis


def improvement_frame(
    improvements: pl.DataFrame, study: StudyResults, *keys: str, metrics: Sequence[str] = METRICS
) -> pl.DataFrame:
    """A row per `keys`, models in their order: the columns of each metric, and answer counts."""
    order = [study.model_order if key == "model" else pl.col(key) for key in keys]
    frame = improvements.select(keys).unique().sort(order, nulls_last=True)
    # The CSV's names behind the metric, by estimator and what it is compared with.
    names = {(TRACE_PLUS, "oracle"): ORACLE_VALUES | ORACLE_DETAILS | WIN_COUNTS}
    for kind in CHOSEN:
        names[TRACE_PLUS, kind] = {key: f"{kind}_{name}" for key, name in CHOSEN_VALUES.items()}
    for entry, against in product(study.with_role("own"), OWN_AGAINST):
        gains = {key: f"{entry.id}_{against}_{name}" for key, name in OWN_VALUES.items()}
        names[entry.id, against] = gains | ({"value": entry.id} if against == TRACE_PLUS else {})
    for metric, ((estimator, against), by_key) in product(metrics, names.items()):
        rows = improvements.filter(metric=metric, estimator=estimator, against=against)
        renamed = (pl.col(key).alias(f"{metric}_{name}") for key, name in by_key.items())
        columns = rows.select(*keys, *renamed)
        frame = frame.join(columns, on=keys, how="left", nulls_equal=True, maintain_order="left")
    counts = study.count_answers(keys)
    return frame.join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def own_names(study: StudyResults, metrics: Sequence[str] = METRICS) -> list[str]:
    """The frame's columns of own scores, score by score."""
    keys = {column.keys[0]: column.signed for column in own_columns(study, metrics)}
    return [key + end for key, is_gain in keys.items() for end in ("", *ENDS * is_gain)]


def own_columns(study: StudyResults, metrics: Sequence[str] = METRICS) -> list[Column]:
    """Each own score's values and its improvements on both baselines and on TRACE+."""
    columns = []
    for entry, metric in product(study.with_role("own"), metrics):
        key, name = f"{metric}_{entry.id}", METRIC_NAMES[metric]
        columns.append(Column((key,), name, entry.label, better=BETTER[metric], added=True))
        for against, rival in OWN_AGAINST.items():
            gain = f"{key}_{against}_{IMPROVEMENT}"
            columns.append(_bounded_gain_column(gain, f"Δ{name}, {rival}", entry.label))
    return columns


def _bounded_gain_column(key: str, label: str, group: str) -> Column:
    """An improvement with its interval, marked where it is a win and that is not above zero."""
    won, above = pl.col(key) > 0, pl.col(f"{key}_low") > 0
    mark = marks.mark_where((won.fill_null(False) & ~above.fill_null(False), marks.UNSUPPORTED))
    return Column((key,), label, group, better="higher", signed=True, added=True, added_mark=mark)


def metric_columns(*names: str, metrics: Sequence[str] = METRICS) -> list[str]:
    """The frame's columns of all metrics, name by name."""
    return [f"{metric}_{name}" for name in names for metric in metrics]


def detail_columns(metrics: Sequence[str] = METRICS) -> list[str]:
    """The columns in the CSV alone, and the comparisons with CHOSEN, metric by metric."""
    chosen = [f"{kind}_{name}" for kind in CHOSEN for name in CHOSEN_VALUES.values()]
    names = (*ORACLE_DETAILS.values(), *chosen)
    return [f"{metric}_{name}" for metric in metrics for name in names]


def best_labels(study: StudyResults) -> list[pl.Expr]:
    """The columns of the best baselines' labels."""
    return [
        pl.col(f"{metric}_{BEST}_id")
        .replace_strict(study.labels, default=None, return_dtype=pl.String)
        .alias(f"{metric}_{BEST}_label")
        for metric in METRICS
    ]


def best_column(
    table: str, metric: str, heading: str, group: str, study: StudyResults, *scope: str
) -> Column:
    """The best baseline's name, marked where it leaves out answers."""
    key = f"{metric}_{BEST}"
    return Column(
        (f"{key}_label",),
        heading,
        group,
        align="left",
        printed=marks.name_in_paper(table, f"{key}_id", f"{key}_label"),
        mark=marks.mark_unscored(study.scored_shares, f"{key}_id", *scope),
    )


def side_columns(
    metric: str, headings: Sequence[tuple[str, str]], study: StudyResults | None = None, *scope: str
) -> list[Column]:
    """The best baseline and TRACE+, each under its (label, group), the better one bold.

    With a `study` a best baseline that leaves out answers is marked. The paper does not print the
    AUROC of calibrated probabilities.
    """
    shares = study.scored_shares if study else None
    unscored = marks.mark_unscored(shares, f"{metric}_{BEST}_id", *scope)
    partly = marks.mark_partly_undefined(metric)
    side_marks = {BEST: partly + unscored, TRACE_PLUS: partly}
    return mark_best_of_row(
        [
            Column(
                (f"{metric}_{side}",),
                label,
                group,
                better=BETTER[metric],
                mark=mark,
                added=metric not in METRICS,
            )
            for (side, mark), (label, group) in zip(side_marks.items(), headings, strict=True)
        ]
    )


def all_side_columns(metrics: Sequence[str], study: StudyResults, *scope: str) -> list[Column]:
    """The best baseline by each metric, then TRACE+ by each, as `side_columns`."""
    pairs = []
    for metric in metrics:
        name = METRIC_NAMES[metric]
        headings = [(name, "Best Non-TRACE"), (name, "TRACE+")]
        pairs.append(side_columns(metric, headings, study, *scope))
    return [column for side in zip(*pairs, strict=True) for column in side]


def gain_column(metric: str, label: str, group: str) -> Column:
    """The improvement on the best baseline, an oracle: a point."""
    key = f"{metric}_{IMPROVEMENT}"
    return Column((key,), label, group, better="higher", signed=True, added=metric not in METRICS)


def chosen_columns(
    study: StudyResults, metrics: Sequence[str] = METRICS, supported: bool = False
) -> list[Column]:
    """The improvements on the selected and on the prespecified baseline.

    A win whose interval does not lie above zero is marked; `supported` adds counts of supported
    wins.
    """
    columns = []
    selected, prespecified = chosen_headings(study)
    for kind, heading in zip(CHOSEN, (selected, f"{prespecified}, prespecified"), strict=True):
        columns += [
            _bounded_gain_column(
                f"{metric}_{kind}_{IMPROVEMENT}", f"Δ{METRIC_NAMES[metric]}", heading
            )
            for metric in metrics
        ]
        columns += [
            Column(
                (f"{metric}_{kind}_supported_wins", f"{metric}_tasks"),
                f"{METRIC_NAMES[metric]} supported",
                heading,
                added=True,
            )
            for metric in metrics
            if supported
        ]
    return columns


def chosen_headings(study: StudyResults) -> list[str]:
    """The headings of the comparisons with CHOSEN."""
    baseline = study.options.get("named_baseline", "")
    return ["Against the selected baseline", f"Against {study.labels.get(baseline, baseline)}"]


def count_columns(accuracy: bool = True) -> list[Column]:
    """The columns of accuracy and counts of correct answers."""
    group = "Answers"
    share = [Column(("accuracy",), "Acc.", group, added=True)] if accuracy else []
    return [*share, Column(("right", "answers"), "Correct", group, added=True)]


def is_unsupported(row: Improvement) -> bool:
    """Whether a difference is a win although its interval does not lie above zero."""
    return row["difference"] is not None and row["difference"] > 0 and not row["supported"]


def interval_level(improvements: Iterable[Improvement]) -> str:
    """The level of the intervals, such as '95 %'."""
    return f"{100 * max(row['level'] for row in improvements):g} %"


def explain_improvements(improvements: Iterable[Improvement], study: StudyResults) -> list[str]:
    """The notes on the comparisons and their intervals, and on the mark where a row has it."""
    rows = [row for row in improvements if row["metric"] in CLAIMED]
    if not rows or nothing_to_compare(study):
        return []
    chosen = [row for row in rows if row["against"] in CHOSEN]
    n_resamples = max((row["resamples"] for row in chosen), default=0)
    notes = [
        "The selected baseline has, in each split, the smallest log loss on the calibration data, "
        "and ranks by its calibrated probability; the prespecified baseline was chosen before any "
        "result. The best baseline (Best Non-TRACE) is an oracle, the best of each column in "
        "hindsight: a point without an interval.",
        f"Intervals ({interval_level(rows)}): percentiles over {n_resamples} resamples of whole "
        "groups of examples, both sides on the same splits, without a correction for multiple "
        "comparisons.",
    ]
    mark = (
        f"{marks.UNSUPPORTED} Better, but the interval does not lie above zero: this win is "
        "not supported."
    )
    return notes + [mark] * any(map(is_unsupported, chosen))


def explain_unscored_best(frame: pl.DataFrame, study: StudyResults, *scope: str) -> list[str]:
    """The note on the best baselines in `frame` that leave out answers."""
    shares = {}
    for pair, share in study.scored_shares.items():
        is_best = [marks.is_unscored([pair], f"{metric}_{BEST}_id", *scope) for metric in METRICS]
        if not frame.filter(pl.any_horizontal(is_best)).is_empty():
            shares[pair] = share
    return marks.explain_unscored(study, shares)


def explain_undefined(pairs: pl.DataFrame, study: StudyResults) -> list[str]:
    """The note on each model's metrics that are undefined in some splits of some task."""
    rows = pairs.filter(against="oracle", estimator=TRACE_PLUS)
    parts = {f" of {label}": rows.filter(model=model) for model, label in study.models.items()}
    return marks.explain_partly_undefined(parts, study.tasks)


def nothing_to_compare(study: StudyResults) -> list[str]:
    """A note where the run lacks TRACE+ or every baseline."""
    if TRACE_PLUS not in study.labels:
        return ["TRACE+ is not among the estimators of this run, so there is nothing to compare."]
    if not study.with_role("baseline"):
        return ["No baseline is among the estimators of this run, so there is nothing to compare."]
    return []
