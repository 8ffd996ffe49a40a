"""The table of cascades: the gain from escalating the least confident answers to a large model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from trace_workflow.tables.marks import excludes_zero, mark_where
from trace_workflow.tables.study_results import StudyResults, frame_of
from trace_workflow.tables.table import Column, Table
from tracecal.calibration.cascade import (
    BELOW,
    BEST,
    COSTS,
    FACTS,
    KEPT_AT,
    KEYS,
    LEAST_GAIN,
    NOTHING,
    SIGNS,
    select_worthwhile,
)
from tracecal.calibration.routing import ORACLE, RANDOM
from tracecal.estimators.estimator import PICKED

LABELS = {
    PICKED: "Selected baseline",
    BEST: "Best baseline (oracle)",
    RANDOM: "Random",
    ORACLE: "Oracle",
}
SIGNIFICANT, BEATEN = "*", "+"
NOTE = (
    f"{SIGNIFICANT} The interval of the difference to random routing excludes zero; {BEATEN} so "
    "does the interval of the difference between TRACE+ and this router ({}, resampling groups of "
    "answers). Random routing and the oracle are expectations over ties; the best baseline is the "
    "best of each column in hindsight, a point without an interval. A dash: the large model gains "
    f"less than {100 * LEAST_GAIN:g} points, too few to divide into shares."
)
LEFT_OUT_NOTE = (
    f"Left out, as the large model gains {100 * BELOW:g} point of accuracy or less, or costs no "
    "more: {}."
)
ENDS = ("low", "high")


def table(study: StudyResults) -> Table:
    """A section per pair of models, means over their tasks, from the analysis of the same name."""
    worthwhile, left_out = select_worthwhile(study.frames["cascades"])
    labels = _router_labels(study)
    rows, titles = [], {}
    for (small, large), pair in worthwhile.group_by(*KEYS, maintain_order=True):
        facts = dict(pair.filter(pl.col("router").is_null()).select("metric", "value").rows())
        titles[f"{small} {large}"] = _title(study, small, large, facts)
        routers = {*pair["router"].drop_nulls()}
        for router, label in labels.items():
            if router in routers:
                row = {"small": small, "large": large, "router": router, "label": label}
                row |= {name: facts[name] for name in (*FACTS, *COSTS)}
                row |= {"cost_unit": pair["unit"][0]}
                rows.append(row | _router_values(pair.filter(router=router), facts))
    left_out_notes = _left_out_notes(left_out, study)
    label_column = Column(("label",), "Routed by", align="left")
    if not rows:
        return Table(
            frame=pl.DataFrame(schema={"router": pl.String, "label": pl.String}),
            columns=(label_column,),
            footnotes=(NOTHING,),
            notes=left_out_notes,
        )
    level = f"{100 * worthwhile['level'].max():g} %"
    return Table(
        frame=frame_of(rows),
        columns=(label_column, *_columns()),
        section=pl.concat_str("small", "large", separator=" "),
        titles=titles,
        notes=(NOTE.format(level), _unit_note(worthwhile), *left_out_notes),
    )


def _router_labels(study: StudyResults) -> dict[str, str]:
    """The label of each router that may have a row, in the order of rows."""
    baseline = study.options["named_baseline"]
    estimators = {
        estimator.id: estimator.label
        for estimator in study.estimators
        if estimator.role == "trace" or estimator.id == baseline
    }
    first = {baseline: estimators.pop(baseline)} if baseline in estimators else {}
    labels = {**first, PICKED: "", BEST: "", **estimators, RANDOM: "", ORACLE: ""}
    return labels | LABELS


def _left_out_notes(pairs: Sequence[Mapping[str, Any]], study: StudyResults) -> tuple[str, ...]:
    """A note on the pairs that are not worth a cascade, if there are any."""

    def why(pair: Mapping[str, Any]) -> str:
        gain = pair["large_right"] - pair["small_right"]
        if gain <= BELOW:
            return f"{100 * gain:+.1f} points"
        return f"{pair['large_cost'] / pair['small_cost']:.0%} of the cost"

    models = study.models
    names = [f"{models[pair['small']]} to {models[pair['large']]} ({why(pair)})" for pair in pairs]
    return (LEFT_OUT_NOTE.format(", ".join(names)),) if names else ()


def _title(study: StudyResults, small: str, large: str, facts: dict[str, float]) -> str:
    right, better, worse = (
        100 * facts[name] for name in ("small_right", "large_right", "small_alone_right")
    )
    models = study.models
    return (
        f"{models[small]} ({right:.1f} % right) to {models[large]} ({better:.1f} %), wrong on "
        f"{worse:.1f} % where the first is right"
    )


def _router_values(rows: pl.DataFrame, facts: dict[str, float | None]) -> dict[str, float | None]:
    """The columns of one router's row."""
    values: dict[str, float | None] = {}
    for metric in SIGNS:
        row = rows.row(by_predicate=pl.col("metric") == metric, named=True)
        values |= {metric: row["value"]} | {f"{metric}_{end}": row[end] for end in ENDS}
        for comparison in ("over_random", "trace_plus_over"):
            for column in (comparison, *(f"{comparison}_{end}" for end in ENDS)):
                values[f"{metric}_{column}"] = row[column]
    cost = rows.filter(metric="cost").sort("share").drop_nulls("value")
    values["needed_cost"] = None
    if len(cost) and values["needed"] is not None:
        needed_cost = np.interp(values["needed"], cost["share"], cost["value"])
        values["needed_cost"] = float(needed_cost / facts["large_cost"])
    return values


def _columns() -> list[Column]:
    def percent(key: str, label: str, group: str) -> Column:
        return Column((key,), label, group, decimals=0, printed=100 * pl.col(key))

    mark = mark_where(
        (excludes_zero("area_over_random"), SIGNIFICANT),
        (excludes_zero("area_trace_plus_over"), BEATEN),
    )
    return [
        Column(("area",), "Area", decimals=3, mark=mark),
        *(
            percent(f"gain_kept_at_{100 * share:.0f}", f"{100 * share:.0f} %", "Gain kept, %")
            for share in KEPT_AT
        ),
        percent("needed", "share, %", f"Needed for −{100 * BELOW:g} point"),
        percent("needed_cost", "cost, %", f"Needed for −{100 * BELOW:g} point"),
    ]


def _unit_note(worthwhile: pl.DataFrame) -> str:
    units = worthwhile["unit"].unique().drop_nulls().sort().to_list()
    if not units:
        return "Costs are unknown: neither prices nor sizes of both models are given."
    return f"Costs are by {' or by '.join(units)} (models[].price where both models have one)."
