"""Findings on the answers that are not kept: how early one can tell, and what cascades gain."""

from collections.abc import Mapping

import polars as pl

from tracecal.analyse.cascades import KEYS
from tracecal.analyse.early_doubt import ALL, TOKENS
from tracecal.analyse.gains import TRACE_PLUS
from tracecal.calibrate.picked import PICKED
from tracecal.explore.support import interval, support
from tracecal.tables.cascades import divided
from tracecal.tables.settings import Frames, Labels
from tracecal.tables.words import count


def not_kept(frames: Frames, models: Labels) -> list[str]:
    """A sentence on each of the analyses `early_doubt` and `cascades` that are there."""
    told = []
    if "early_doubt" in frames:
        told += early(frames["early_doubt"])
    if "cascades" in frames:
        told += cascades(frames["cascades"], models)
    return told


def early(found: pl.DataFrame) -> list[str]:
    """After how many tokens the AUROC of TRACE+ is no longer apart from that of whole answers."""
    own = found.filter(pl.col("task").is_null(), estimator=TRACE_PLUS, metric="auroc")
    rows = {row["prefix"]: row for row in own.iter_rows(named=True)}
    if ALL not in rows or rows[ALL]["value"] is None:
        return []
    apart = [
        place
        for place, tokens in enumerate(TOKENS)
        if (low := rows[str(tokens)]["lost_low"]) is not None and low > 0
    ]
    values = ", ".join(
        f"{rows[str(tokens)]['value']:.3f} after {count(tokens, 'token')}" for tokens in TOKENS[:4]
    )
    first = max(apart, default=-1) + 1
    verdict = (
        f"from {count(TOKENS[first], 'token')} on not distinguishable from it"
        if first < len(TOKENS)
        else f"worse after {TOKENS[-1]} tokens still"
    )
    return [
        f"How early can one tell? AUROC of TRACE+ {values}, {rows[ALL]['value']:.3f} at the end: "
        f"{verdict}."
    ]


def cascades(found: pl.DataFrame, models: Labels) -> list[str]:
    """What routing by TRACE+ gains on random routing, for the pair with the largest gain."""
    means, _ = divided(found)
    facts = means.filter(pl.col("router").is_null()).pivot("metric", index=KEYS, values="value")
    if means.is_empty() or TRACE_PLUS not in {*means["router"]}:
        return []
    gain = pl.col("large_right") - pl.col("small_right")
    pair = facts.sort(gain, descending=True, maintain_order=True).row(0, named=True)
    own = means.filter(small=pair["small"], large=pair["large"])
    plus = {row["metric"]: row for row in own.filter(router=TRACE_PLUS).iter_rows(named=True)}
    if "area" not in plus:
        return []
    kept = plus["gain_kept_at_20"]["value"]
    share = "" if kept is None else f" keep {kept:.0%} of its gain (at random 20%)"
    beside = "".join(
        f"; against the picked baseline {_verdict(row, 'trace_plus_over')}"
        for row in own.filter(router=PICKED, metric="area").iter_rows(named=True)
    )
    return [
        f"Of a cascade from {models[pair['small']]} ({pair['small_right']:.0%} right) to "
        f"{models[pair['large']]} ({pair['large_right']:.0%}), the 20% of answers with the lowest "
        f"probability by TRACE+{share or ' are escalated'}. Its mean accuracy over all shares "
        f"escalated, against random routing: {_verdict(plus['area'], 'over_random')}{beside}. "
        f"The larger model is wrong on {pair['small_alone_right']:.0%} where the smaller is right."
    ]


def _verdict(row: Mapping, column: str) -> str:
    value, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    if value is None or low is None:
        return "no interval could be computed"
    return f"{value:+.3f} ({interval(row['level'], low, high)}), {support(low, high)}"
