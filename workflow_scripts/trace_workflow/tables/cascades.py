"""Cascades of two models: what is gained by escalating the least confident answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from trace_workflow.tables.notes import frame_of, marked
from trace_workflow.tables.settings import Frames, Settings
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
from tracecal.estimators.entry import PICKED

LABELS = {
    PICKED: "Selected baseline",
    BEST: "Best baseline (oracle)",
    RANDOM: "Random",
    ORACLE: "Oracle",
}
APART, AHEAD = "*", "+"
EXPLAINED = (
    f"{APART} The interval of the difference to random routing excludes zero. {AHEAD} That of the "
    "difference between TRACE+ and this router does ({}, resampling groups of answers). Random "
    "routing and the oracle stand in expectation over ties; the best baseline is that of each "
    "column in hindsight, a point without an interval. A dash: the large model gains less than "
    f"{100 * LEAST_GAIN:g} points, of which a share would say little."
)
LEFT_OUT = (
    f"Left out, as the second model gains {100 * BELOW:g} point of accuracy or less, or costs no "
    "more: {}."
)
ENDS = ("low", "high")


def table(frames: Frames, settings: Settings) -> Table:
    """From the analysis of the same name: a section per pair of models, means over their tasks."""
    found, left_out = select_worthwhile(frames["cascades"])
    named = settings.more["named"]
    known = {
        one.id: one.label for one in settings.estimators if one.role == "trace" or one.id == named
    }
    labels = {**known, **LABELS}
    order = [named, PICKED, BEST, *(name for name in known if name != named), RANDOM, ORACLE]
    rows, titles = [], {}
    for (small, large), part in found.group_by(*KEYS, maintain_order=True):
        facts = dict(part.filter(pl.col("router").is_null()).select("metric", "value").rows())
        section = f"{small} {large}"
        titles[section] = _title(settings, small, large, facts)
        present = {*part["router"].drop_nulls()}
        for router in (name for name in order if name in present):
            row = {"small": small, "large": large, "router": router, "label": labels[router]}
            row |= {name: facts[name] for name in (*FACTS, *COSTS)}
            row |= {"cost_unit": part["unit"][0]} | _measured(part.filter(router=router), facts)
            rows.append(row)
    columns = [Column(("label",), "Routed by", align="left"), *(_columns() if rows else ())]
    level = f"{100 * found['level'].max():g} %" if rows else ""
    return Table(
        frame=frame_of(rows)
        if rows
        else pl.DataFrame(schema={"router": pl.String, "label": pl.String}),
        columns=tuple(columns),
        section=pl.concat_str("small", "large", separator=" ") if rows else None,
        titles=titles,
        footnotes=() if rows else (NOTHING,),
        notes=(
            *((EXPLAINED.format(level), _units(found)) if rows else ()),
            *_left_out(left_out, settings),
        ),
    )


def _left_out(pairs: Sequence[Mapping[str, Any]], settings: Settings) -> tuple[str, ...]:
    """A note on the pairs that `divided` leaves out."""

    def why(pair: Mapping[str, Any]) -> str:
        gain = pair["large_right"] - pair["small_right"]
        if gain <= BELOW:
            return f"{100 * gain:+.1f} points"
        return f"{pair['large_cost'] / pair['small_cost']:.0%} of the cost"

    told = [
        f"{settings.models[one['small']]} to {settings.models[one['large']]} ({why(one)})"
        for one in pairs
    ]
    return (LEFT_OUT.format(", ".join(told)),) if told else ()


def _title(settings: Settings, small: str, large: str, facts: dict[str, float]) -> str:
    right, better, worse = (
        100 * facts[name] for name in ("small_right", "large_right", "small_alone_right")
    )
    models = settings.models
    return (
        f"{models[small]} ({right:.1f} % right) to {models[large]} ({better:.1f} %), which is "
        f"wrong on {worse:.1f} % where the first is right"
    )


def _measured(part: pl.DataFrame, facts: dict[str, float | None]) -> dict[str, float | None]:
    """The columns of one router's row."""
    row: dict[str, float | None] = {}
    for metric in SIGNS:
        own = part.row(by_predicate=pl.col("metric") == metric, named=True)
        row |= {metric: own["value"]} | {f"{metric}_{end}": own[end] for end in ENDS}
        for against in ("over_random", "trace_plus_over"):
            row |= {
                "_".join(filter(None, [metric, against, end])): own[
                    "_".join(filter(None, [against, end]))
                ]
                for end in ("", *ENDS)
            }
    cost = part.filter(metric="cost").sort("share").drop_nulls("value")
    row["needed_cost"] = None
    if len(cost) and row["needed"] is not None:
        at = np.interp(row["needed"], cost["share"], cost["value"])
        row["needed_cost"] = float(at / facts["large_cost"])
    return row


def _columns() -> list[Column]:
    def percent(key: str, label: str, group: str) -> Column:
        return Column((key,), label, group, decimals=0, printed=100 * pl.col(key))

    mark = marked(
        (_apart("area_over_random"), APART),
        (_apart("area_trace_plus_over"), AHEAD),
    )
    return [
        Column(("area",), "Area", decimals=3, mark=mark),
        *(
            percent(f"gain_kept_at_{100 * at:.0f}", f"{100 * at:.0f} %", "Gain kept, %")
            for at in KEPT_AT
        ),
        percent("needed", "share, %", f"Needed for −{100 * BELOW:g} point"),
        percent("needed_cost", "cost, %", f"Needed for −{100 * BELOW:g} point"),
    ]


def _apart(key: str) -> pl.Expr:
    return ((pl.col(f"{key}_low") > 0) | (pl.col(f"{key}_high") < 0)).fill_null(False)


def _units(found: pl.DataFrame) -> str:
    units = found["unit"].unique().drop_nulls().sort().to_list()
    if not units:
        return "Costs are unknown: neither prices nor sizes of both models are given."
    return f"Costs are by {' or by '.join(units)} (models[].price where both models have one)."
