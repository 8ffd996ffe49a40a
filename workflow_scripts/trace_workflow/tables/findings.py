"""A run's findings in sentences, each with what its interval supports."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.tables import notes
from trace_workflow.tables.captions import count
from trace_workflow.tables.settings import Frames, Labels, Settings
from tracecal.calibration.cascades import KEYS, divided
from tracecal.estimators.entry import PICKED, TRACE_PLUS


def interval(level: float, low: float, high: float) -> str:
    """The interval of a difference, such as '95% interval -0.010 to +0.030'."""
    return f"{100 * level:g}% interval {low:+.3f} to {high:+.3f}"


def support(low: float | None, high: float | None) -> str:
    """Whether a difference is supported by its interval, a loss, or neither; null: it has none."""
    if low is None or high is None:
        return "no interval"
    if low <= 0 <= high:
        return "not distinguishable from zero"
    return "supported" if low > 0 else "a loss"


# Findings on the answers that are not kept: how early one can tell, and what cascades gain.


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
        f"; against the picked baseline {_cascade_verdict(row, 'trace_plus_over')}"
        for row in own.filter(router=PICKED, metric="area").iter_rows(named=True)
    )
    return [
        f"Of a cascade from {models[pair['small']]} ({pair['small_right']:.0%} right) to "
        f"{models[pair['large']]} ({pair['large_right']:.0%}), the 20% of answers with the lowest "
        f"probability by TRACE+{share or ' are escalated'}. Its mean accuracy over all shares "
        "escalated, against random routing: "
        f"{_cascade_verdict(plus['area'], 'over_random')}{beside}. "
        f"The larger model is wrong on {pair['small_alone_right']:.0%} where the smaller is right."
    ]


def _cascade_verdict(row: Mapping, column: str) -> str:
    value, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    if value is None or low is None:
        return "no interval could be computed"
    return f"{value:+.3f} ({interval(row['level'], low, high)}), {support(low, high)}"


# A run's findings in a few sentences: for a terminal, the report's first page and README.


NAMES = {
    "auroc": "AUROC",
    "auroc_calibrated": "AUROC of calibrated probabilities",
    "brier": "Brier",
}
POINTED = {
    "window": "the window of peak risk",
    "failing_name": "the name that fails most often, always",
    "random_part": "a random part",
    "random_window": "a random window",
}
DIRECTION = {"auroc": "higher", "auroc_calibrated": "higher", "brier": "lower"}
HINDSIGHT = (
    "The best baseline in hindsight is the one that turned out best here, which nobody could have "
    "chosen: a point without an interval. That TRACE+ lies below it is not evidence of a loss."
)


def findings(frames: Frames, settings: Settings) -> list[str]:
    """A run's findings on its main study's model, a sentence or two each, from the analyses.

    `settings` has the estimators, labels and, as `more`, what the main study's table needs.
    """
    main = settings.studies["main"]
    own = pl.col("task").is_in(main["tasks"]), pl.col("model") == main["model"]
    labels = {entry.id: entry.label for entry in settings.estimators} | settings.models
    rows = frames["improvements"]
    overall = frames["averages"].filter(pl.col("task").is_null(), study="main")
    compared = headline(rows, overall, labels)
    if "comparisons" in frames:
        compared += _at_once(frames["comparisons"])
    compared += _by_task(
        rows.filter(pl.col("study").is_null(), *own, metric="auroc"), labels, settings.tasks
    )
    broader = [entry.id for entry in settings.of_role("broader")]
    others = overall.filter(pl.col("estimator").is_in(broader), metric="auroc")
    return [
        *(
            guaranteed(frames["risk_coverage"].filter(*own), frames["accuracy"], settings)
            if "risk_coverage" in frames and settings.more.get("headline")
            else []
        ),
        *notes.notes(frames, settings),
        *compared,
        *(_position(frames["position_shift"]) if "position_shift" in frames else []),
        *(_located(frames["localisation"], settings) if "localisation" in frames else []),
        *not_kept(frames, settings.models),
        *_others(others, labels),
        *([HINDSIGHT] if compared else []),
    ]


def guaranteed(thresholds: pl.DataFrame, accuracy: pl.DataFrame, settings: Settings) -> list[str]:
    """The guarantee of the task and error rate that the configuration names, kept or not.

    Choosing them here, by what came out, would make the stated confidence too high.
    """
    named = thresholds.filter(**settings.more["headline"])
    rows = named.join(accuracy.select("model", "task", "accuracy"), on=["model", "task"])
    return [_guaranteed(row, settings) for row in rows.iter_rows(named=True)]


def _guaranteed(row: Mapping, settings: Settings) -> str:
    model, task = settings.models[row["model"]], settings.tasks[row["task"]]
    rate, most = 100 * row["error_rate"], row["largest_group"]
    terms = f"{row['confidence']:.0%} confidence; task and rate were fixed beforehand"
    if most > 1:
        terms += f"; a group of questions counts with at most {most}"
    promised = (
        f"Keep the {100 * row['coverage']:.0f} it is surest of: at most {rate:g} of 100 such "
        f"answers are wrong ({terms})."
        if row["threshold"] is not None
        else f"That at most {rate:g} of 100 kept answers are wrong cannot be promised here "
        f"({terms}): {row['reason']}."
    )
    others = (
        f" Of {count(row['other_splits'], 'other random split')} of the labels "
        f"{row['other_thresholds']} can promise that."
        if row["other_splits"]
        else ""
    )
    return (
        f"{task}: {model} gets {100 * (1 - row['accuracy']):.0f} of 100 wrong. {promised}{others}"
    )


def headline(improvements: pl.DataFrame, main: pl.DataFrame, labels: Labels) -> list[str]:
    """A few sentences per metric on TRACE+ against baselines, for each study.

    `main` holds the averages of the main study's model; `labels` names estimators and models. A
    difference counts as supported only where its interval excludes zero.
    """
    chosen = improvements.filter(pl.col("task").is_null(), pl.col("metric").is_in(list(NAMES)))
    trace = dict(main.filter(estimator="trace").select("metric", "mean").iter_rows())
    told = []
    for metric in NAMES:
        rows = {
            row["against"]: row for row in chosen.filter(study="main", metric=metric).to_dicts()
        }
        if rows:
            told.append(_main(rows, trace.get(metric), labels))
    cross = chosen.filter(pl.col("model").is_null(), study="cross")
    for metric in NAMES:
        rows = {row["against"]: row for row in cross.filter(metric=metric).to_dicts()}
        if "picked" in rows:
            told.append(_cross(rows))
    return told


def _main(rows: Mapping[str, Mapping], trace: float | None, labels: Labels) -> str:
    row = next(iter(rows.values()))
    model, metric = labels[row["model"]], NAMES[row["metric"]]
    if all(one["difference"] is None for one in rows.values()):
        return f"{metric} on {model}: TRACE+ or every baseline has no value on some task."
    beside = "" if trace is None else f", TRACE {trace:.3f}"
    parts = [
        f"{metric} on {model}, mean over tasks ({DIRECTION[row['metric']]} is better): TRACE+ "
        f"{row['value']:.3f}{beside}."
    ]
    parts += [
        f"Against {_called(one, labels)} ({one['reference']:.3f}): {_verdict(one)}."
        for kind in ("picked", "named")
        if (one := rows.get(kind)) and one["difference"] is not None
    ]
    if (best := rows.get("oracle")) and best["difference"] is not None:
        parts.append(
            f"The best baseline in hindsight, {labels[best['baseline']]}, has "
            f"{best['reference']:.3f}."
        )
    return " ".join(parts)


def _called(row: Mapping, labels: Labels) -> str:
    name = labels.get(row["baseline"], row["baseline"])
    if row["against"] == "named":
        return f"{name}, named beforehand"
    most = f", most often {name}" if name else ""
    return f"the baseline picked on the calibration labels{most}"


def _at_once(comparisons: pl.DataFrame) -> list[str]:
    """How many baselines TRACE+ is better or worse than, by simultaneous intervals."""
    own = comparisons.filter(pl.col("task").is_null(), study="main")
    told = []
    for metric in NAMES:
        rows = own.filter(metric=metric)
        if rows.height:
            better, worse = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
            told.append(
                f"{NAMES[metric]}: of {count(rows.height, 'baseline')} TRACE+ is better than "
                f"{better} and worse than {worse}"
            )
    sentence = (
        f"By {100 * own['level'].max():g}% intervals that hold for all baselines at once: "
        if told
        else ""
    )
    return [f"{sentence}{'; '.join(told)}."] if told else []


def _by_task(rows: pl.DataFrame, labels: Labels, tasks: Labels) -> list[str]:
    results = []
    for row in rows.filter(against="picked").drop_nulls("difference").sort("task").to_dicts():
        low, high = row["low"], row["high"]
        ends = f", {interval(row['level'], low, high)}" if low is not None else ""
        difference = f"{row['difference']:+.3f}{ends}"
        results.append(f"{tasks[row['task']]} {difference} ({support(low, high)})")
    sentence = (
        f"AUROC of TRACE+ less that of the picked baseline, task by task: {'; '.join(results)}."
    )
    return [sentence] if results else []


def _located(found: pl.DataFrame, settings: Settings) -> list[str]:
    """How often the window of peak risk lies in a wrong part, among what knows nothing of the
    answer's risk, best first, for each pair.
    """
    pairs = found.select("model", "task").unique(maintain_order=True)
    told = []
    for pair in pairs.iter_rows(named=True):
        rows = {row["pointer"]: row for row in found.filter(**pair).iter_rows(named=True)}
        peak = rows["window"]
        if peak["value"] is None or peak["low"] is None:
            continue
        ends = f"{100 * peak['level']:g}% interval {peak['low']:.0%} to {peak['high']:.0%}"
        best_first = sorted(POINTED, key=lambda name: -rows[name]["value"])
        shares = [
            f"{POINTED[name]} in {rows[name]['value']:.0%}" + f" ({ends})" * (name == "window")
            for name in best_first
        ]
        told.append(
            f"Does risk peak where an answer is wrong? Of {peak['pointed']} answers of "
            f"{settings.models[pair['model']]} with right and wrong parts "
            f"({settings.tasks[pair['task']]}), a wrong one is pointed at by {'; '.join(shares)}."
        )
    return told


def _position(shift: pl.DataFrame) -> list[str]:
    """Whether TRACE ranks better with an answer's tokens in their order than in random ones."""
    means = shift.filter(pl.col("task").is_null(), over="draw")
    found = {row["quantity"]: row for row in means.to_dicts()}
    original = shift.filter(pl.col("task").is_null(), quantity="original")["mean"].to_list()
    difference = found.get("difference")
    if difference is None or not original or None in (difference["mean"], original[0]):
        return []
    apart = difference["sd"] is not None and abs(difference["mean"]) > 2 * difference["sd"]
    verdict = (
        "no difference beyond that between random orders"
        if not apart
        else "the order helps"
        if difference["mean"] < 0
        else "random orders rank better"
    )
    by_task = shift.drop_nulls("task").filter(quantity="difference", over="draw").sort("task")
    ends = by_task["mean"].drop_nulls()
    where = f"; by task {ends.min():+.3f} to {ends.max():+.3f}" if len(ends) > 1 else ""
    return [
        f"Does position matter? AUROC of TRACE with the tokens in their order {original[0]:.3f}, "
        f"in random orders {found['shifted']['mean']:.3f} ({difference['mean']:+.3f}{where}): "
        f"{verdict}."
    ]


def _others(averages: pl.DataFrame, labels: Labels) -> list[str]:
    ranked = averages.drop_nulls("mean").sort("mean", "estimator", descending=[True, False])
    results = [f"{labels[row['estimator']]} {row['mean']:.2f}" for row in ranked.to_dicts()]
    sentence = f"AUROC of methods of other families: {', '.join(results)}."
    return [sentence] if results else []


def _cross(rows: Mapping[str, Mapping]) -> str:
    picked = rows["picked"]
    parts = [
        f"than the picked baseline on {picked['wins']} of {picked['tasks']} model-task pairs, "
        f"{picked['supported_wins']} of them supported by their interval"
    ]
    if "oracle" in rows:
        parts.append(f"than the best in hindsight on {rows['oracle']['wins']}")
    return f"{NAMES[picked['metric']]} over models: TRACE+ is better {', and '.join(parts)}."


def _verdict(row: Mapping) -> str:
    words = f"{abs(row['difference']):.3f} {'better' if row['difference'] > 0 else 'worse'}"
    low, high = row["low"], row["high"]
    if low is None:
        return f"{words}; no interval could be computed"
    return f"{words} ({interval(row['level'], low, high)}), {support(low, high)}"
