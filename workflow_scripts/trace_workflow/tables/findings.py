"""A run's findings, one sentence each, and the numbers behind the comparisons among them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.tables import notes
from trace_workflow.tables.captions import count, listed
from trace_workflow.tables.settings import Frames, Labels, Settings
from tracecal.calibration.cascade import KEYS, select_worthwhile
from tracecal.estimators.entry import PICKED, TRACE_PLUS

SELECTED = "the baseline selected on the calibration data"
PRESPECIFIED = "the prespecified baseline"
RIVALS = {"picked": SELECTED, "named": PRESPECIFIED}
OUTCOMES = ("won", "tied", "lost")


class Finding(NamedTuple):
    """A sentence on a `topic`, and the table that has its details.

    A comparison of TRACE+ with a baseline has an `outcome` of OUTCOMES, null where it has no
    interval, and its numbers: a positive `difference` is in TRACE+'s favour.
    """

    topic: str
    sentence: str
    table: str
    outcome: str | None = None
    model: str | None = None
    task: str | None = None
    task_label: str | None = None
    metric: str | None = None
    against: str | None = None
    baseline: str | None = None
    value: float | None = None
    reference: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None


NUMBERS = ("value", "reference", "difference", "low", "high", "level")
SCHEMA = {name: pl.Float64 if name in NUMBERS else pl.String for name in Finding._fields}
RUN, GUARANTEE, CAVEAT, COMPARISON = "run", "guarantee", "caveat", "comparison"


def as_frame(told: Sequence[Finding]) -> pl.DataFrame:
    """A row per finding, in their order."""
    return pl.DataFrame([one._asdict() for one in told], schema=SCHEMA)


def findings(frames: Frames, settings: Settings) -> list[Finding]:
    """A run's findings from the analyses: first the guarantee of the main study's model, then what
    it answers, how TRACE+ compares, and the rest.

    `settings` has the estimators, labels and, as `more`, what the main study's table needs.
    """
    main = settings.studies["main"]
    own = pl.col("task").is_in(main["tasks"]), pl.col("model") == main["model"]
    labels = {entry.id: entry.label for entry in settings.estimators} | settings.models
    rows = frames["improvements"]
    overall = frames["averages"].filter(pl.col("task").is_null(), study="main")
    broader = [entry.id for entry in settings.of_role("broader")]
    others = overall.filter(pl.col("estimator").is_in(broader), metric="auroc")
    fixed = "risk_coverage" in frames and settings.more.get("headline")
    return [
        *(
            guaranteed(frames["risk_coverage"].filter(*own), frames["accuracy"], settings)
            if fixed
            else ()
        ),
        Finding(RUN, _done(frames["accuracy"], settings), "main_comparison"),
        *_answered(frames, settings),
        *compared(rows.filter(study="main"), settings.tasks, labels),
        *compared(rows.filter(pl.col("study").is_null(), *own), settings.tasks, labels),
        *(at_once(frames["comparisons"]) if "comparisons" in frames else ()),
        *hindsight(rows.filter(study="main", metric="auroc", against="oracle"), labels),
        *_others(others, labels),
        *(position(frames["position_shift"]) if "position_shift" in frames else ()),
        *(located(frames["localisation"], settings) if "localisation" in frames else ()),
        *(early(frames["early_doubt"]) if "early_doubt" in frames else ()),
        *over_models(rows.filter(pl.col("model").is_null(), study="cross")),
        *(cascades(frames["cascades"], settings.models) if "cascades" in frames else ()),
    ]


# What was answered, and what may be relied on.


def guaranteed(
    thresholds: pl.DataFrame, accuracy: pl.DataFrame, settings: Settings
) -> list[Finding]:
    """The guarantee of the task and error rate that the configuration fixes, given or not.

    Choosing them here, by what came out, would make the stated confidence too high.
    """
    fixed = thresholds.filter(**settings.more["headline"])
    rows = fixed.join(accuracy.select("model", "task", "accuracy"), on=["model", "task"])
    told = []
    for row in rows.iter_rows(named=True):
        rate = f"{100 * row['error_rate']:g} of 100"
        told.append(Finding(GUARANTEE, _guarantee(row, rate, settings), "risk_coverage"))
    return told


def _guarantee(row: Mapping, rate: str, settings: Settings) -> str:
    model, task = settings.models[row["model"]], settings.tasks[row["task"]]
    terms = "task and rate were fixed beforehand"
    if (most := row["largest_group"]) > 1:
        terms += f"; a group of questions counts with at most {most}"
    kept = (
        f"Keep the {100 * row['coverage']:.0f} that TRACE+ is surest of: at most {rate} such "
        f"answers are wrong, with {row['confidence']:.0%} confidence ({terms})."
        if row["threshold"] is not None
        else f"No threshold on TRACE+ guarantees, with {row['confidence']:.0%} confidence, at most "
        f"{rate} wrong ({terms}): {row['reason']}."
    )
    return f"{model} gets {100 * (1 - row['accuracy']):.0f} of 100 wrong on {task}. {kept}"


def _done(accuracy: pl.DataFrame, settings: Settings) -> str:
    """What the run did. Parts of answers are no answers of their own."""
    whole = accuracy.filter(~pl.col("task").is_in(list(settings.more.get("missing", {}))))
    main, others = settings.studies["main"]["model"], whole["model"].n_unique() - 1
    beside = f" and {count(others, 'other model')}" if others else ""
    return (
        f"{settings.models[main]}{beside} gave {whole['n'].sum():,} answers to "
        f"{count(whole['task'].n_unique(), 'task')}."
    )


def _answered(frames: Frames, settings: Settings) -> list[Finding]:
    """How many answers are right, whether some are missing, and a warning where labels are few."""
    counted = notes.rows(frames, settings)
    model = settings.models[settings.studies["main"]["model"]]
    right = [f"{row['correct']} of {row['n']} on {settings.tasks[row['task']]}" for row in counted]
    sentences = [f"{model} answers correctly: {listed(right)}."] if right else []
    return [
        *(Finding("answers", one, "main_comparison") for one in sentences),
        *(
            Finding("missing", one, "main_comparison")
            for one in notes.incomplete(counted, settings)
        ),
        *(Finding(CAVEAT, one, "main_comparison") for one in few(counted, settings)),
    ]


def few(counted: Iterable[Mapping], settings: Settings) -> list[str]:
    """A warning where fits have fewer labels than advised (Riley et al. 2020), on the task that
    lacks most.
    """
    weights, share = settings.more["weights"], settings.more["calibration_share"]
    lacking = []
    for row in counted:
        rarer = min(row["correct"], row["n"] - row["correct"])
        wanted, has = notes.needs(weights, rarer / row["n"]), round(share * row["n"])
        if has < wanted:
            lacking.append((wanted / max(has, 1), wanted, has, settings.tasks[row["task"]]))
    if not lacking:
        return []
    _, wanted, has, task = max(lacking)
    advised = "all are of one class" if wanted == float("inf") else f"{wanted:.0f} are advised"
    return [f"Labels are few, so the numbers may change: {has} on {task}, where {advised}."]


# TRACE+ against baselines.


class Measure(NamedTuple):
    """A metric, the one that has to agree with it on a win, and what being better means."""

    name: str
    beside: str | None
    won: str
    tied: str
    lost: str


MEASURES = {
    "auroc": Measure(
        "AUROC",
        "auroc_calibrated",
        "ranks right above wrong answers better than",
        "ranks right above wrong answers about as well as",
        "ranks right above wrong answers worse than",
    ),
    "brier": Measure(
        "Brier score",
        None,
        "gives more exact probabilities than",
        "gives about as exact probabilities as",
        "gives less exact probabilities than",
    ),
}


def interval(row: Mapping, start: str = "") -> str:
    """A difference's interval, such as '95% interval -0.010 to +0.030'."""
    low, high = row[f"{start}low"], row[f"{start}high"]
    return f"{100 * row['level']:g}% interval {low:+.3f} to {high:+.3f}"


def outcome(low: float | None, high: float | None) -> str | None:
    """Whether a difference is won, tied or lost by its interval; null where it has none."""
    if low is None or high is None:
        return None
    return "tied" if low <= 0 <= high else "won" if low > 0 else "lost"


def compared(rows: pl.DataFrame, tasks: Labels, labels: Labels) -> list[Finding]:
    """TRACE+ against the prespecified and the selected baseline: over all tasks by both measures,
    and on single tasks against the selected one by AUROC.

    A win by AUROC counts only where calibrated probabilities win as well: the raw scores of others
    have a direction that is not fitted.
    """
    by_scope = {
        (row["task"], row["against"], row["metric"]): row for row in rows.iter_rows(named=True)
    }
    told = []
    for task in sorted({*rows["task"]}, key=lambda one: one or ""):
        measures, rivals = (MEASURES, RIVALS) if task is None else (["auroc"], ["picked"])
        for against in sorted(rivals):
            for metric in measures:
                row = by_scope.get((task, against, metric))
                if row is not None:
                    beside = by_scope.get((task, against, MEASURES[metric].beside))
                    told.append(_comparison(row, beside, tasks, labels))
    return told


def _comparison(row: Mapping, beside: Mapping | None, tasks: Labels, labels: Labels) -> Finding:
    measure, rival = MEASURES[row["metric"]], _rival(row, labels)
    where = f"On {tasks[row['task']]}, " if row["task"] else ""
    known = {name: row[name] for name in (*NUMBERS, "model", "task", "metric", "against")}
    known |= {"baseline": row["baseline"], "task_label": tasks.get(row["task"])}
    if row["difference"] is None:
        sentence = f"{where}TRACE+ cannot be compared with {rival}: no {measure.name} on some task."
        return Finding(COMPARISON, sentence, "main_comparison", None, **known)
    result = outcome(row["low"], row["high"])
    numbers = f"{measure.name} {row['value']:.3f} and {row['reference']:.3f}, {difference(row)}"
    if beside is not None and beside["difference"] is not None:
        both = {result, outcome(beside["low"], beside["high"])}
        result = None if None in both else both.pop() if len(both) == 1 else _disagreeing(both)
        numbers += f"; of calibrated probabilities {difference(beside)}"
    words = "has no interval against" if result is None else getattr(measure, result)
    sentence = f"{where}TRACE+ {words} {rival} ({numbers})."
    return Finding(COMPARISON, sentence, "main_comparison", result, **known)


def _disagreeing(outcomes: set[str]) -> str:
    return "lost" if "lost" in outcomes else "tied"


def difference(row: Mapping) -> str:
    """By how much TRACE+ is better, with its interval where it has one."""
    ends = f", {interval(row)}" if row["low"] is not None else ""
    return f"{abs(row['difference']):.3f} {'better' if row['difference'] > 0 else 'worse'}{ends}"


def _rival(row: Mapping, labels: Labels) -> str:
    name = labels.get(row["baseline"], row["baseline"])
    words = RIVALS[row["against"]]
    most = "" if row["against"] == "named" else "most often "
    return f"{words}, {most}{name}" if name else words


def at_once(comparisons: pl.DataFrame) -> list[Finding]:
    """How many baselines TRACE+ is better or worse than, by simultaneous intervals."""
    own = comparisons.filter(pl.col("task").is_null(), study="main")
    counts = []
    for metric in ("auroc", "auroc_calibrated", "brier"):
        rows = own.filter(metric=metric)
        if rows.height:
            better, worse = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
            counts.append(f"{better} of {rows.height} by {notes.NAMES[metric]} (worse: {worse})")
    if not counts:
        return []
    sentence = (
        f"With {100 * own['level'].max():g}% intervals that hold for all baselines at once, TRACE+ "
        f"is better than {listed(counts)}."
    )
    return [Finding("all baselines", sentence, "main_comparison")]


def hindsight(rows: pl.DataFrame, labels: Labels) -> list[Finding]:
    """The best baseline in hindsight, which is no evidence either way."""
    row = next(rows.filter(pl.col("task").is_null()).iter_rows(named=True), None)
    if row is None or row["difference"] is None:
        return []
    sentence = (
        f"The best baseline in hindsight, {labels[row['baseline']]} (AUROC {row['reference']:.3f}, "
        f"TRACE+ {row['value']:.3f}), could not have been chosen beforehand, so it has no interval "
        "and is no evidence for or against TRACE+."
    )
    return [Finding("hindsight", sentence, "main_comparison")]


def _others(averages: pl.DataFrame, labels: Labels) -> list[Finding]:
    ranked = averages.drop_nulls("mean").sort("mean", "estimator", descending=[True, False])
    results = [f"{labels[row['estimator']]} {row['mean']:.2f}" for row in ranked.to_dicts()]
    sentence = f"AUROC of methods of other families: {'; '.join(results)}."
    return [Finding("other methods", sentence, "broader_uq")] if results else []


def over_models(rows: pl.DataFrame) -> list[Finding]:
    """On how many pairs of the cross-model study TRACE+ is better, and with which support."""
    told = []
    for metric in MEASURES:
        by_rival = {row["against"]: row for row in rows.filter(metric=metric).iter_rows(named=True)}
        parts = [
            f"than {RIVALS[rival]} on {row['wins']} ({row['supported_wins']} with an interval "
            "above zero)"
            for rival in sorted(RIVALS)
            if (row := by_rival.get(rival))
        ]
        if parts:
            pairs = max(by_rival[rival]["tasks"] for rival in RIVALS if rival in by_rival)
            sentence = (
                f"Over {count(pairs, 'pair')} of model and task, TRACE+ has a better "
                f"{MEASURES[metric].name} {' and '.join(parts)}."
            )
            told.append(Finding("models", sentence, "cross_model"))
    return told


# Where risk lies in an answer, how early one can tell, and what a larger model makes of the rest.


def position(shift: pl.DataFrame) -> list[Finding]:
    """Whether TRACE ranks better with an answer's tokens in their order than in random ones."""
    means = shift.filter(pl.col("task").is_null(), over="draw")
    found = {row["quantity"]: row for row in means.to_dicts()}
    original = shift.filter(pl.col("task").is_null(), quantity="original")["mean"].to_list()
    apart = found.get("difference")
    if apart is None or not original or None in (apart["mean"], original[0]):
        return []
    clear = apart["sd"] is not None and abs(apart["mean"]) > 2 * apart["sd"]
    verdict = (
        "does not measurably change" if not clear else "lowers" if apart["mean"] < 0 else "raises"
    )
    sentence = (
        f"Shuffling an answer's tokens {verdict} the AUROC of TRACE: {original[0]:.3f} in order, "
        f"{found['shifted']['mean']:.3f} shuffled."
    )
    return [Finding("position", sentence, "position_shift")]


POINTED = {
    "failing_name": "the part that usually fails",
    "window": "the window of peak risk",
    "random_part": "a random part",
    "random_window": "a random window",
}


def located(found: pl.DataFrame, settings: Settings) -> list[Finding]:
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
        ends = f" ({100 * peak['level']:g}% interval {peak['low']:.0%} to {peak['high']:.0%})"
        shares = [
            f"{POINTED[name]} {rows[name]['value']:.0%}" + ends * (name == "window")
            for name in sorted(POINTED, key=lambda name: -(rows[name]["value"] or 0))
        ]
        sentence = (
            f"In {peak['pointed']} partly wrong answers of {settings.models[pair['model']]} "
            f"({settings.tasks[pair['task']]}), these point at a wrong part: {', '.join(shares)} "
            "of the time."
        )
        told.append(Finding("localisation", sentence, "localisation"))
    return told


def early(found: pl.DataFrame) -> list[Finding]:
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
    first = max(apart, default=-1) + 1
    shown = TOKENS[min(first, len(TOKENS) - 1)]
    verdict = "not measurably less than" if first < len(TOKENS) else "still measurably less than"
    sentence = (
        f"After {count(shown, 'token')} TRACE+ has an AUROC of {rows[str(shown)]['value']:.3f}, "
        f"{verdict} at the end of the answer ({rows[ALL]['value']:.3f})."
    )
    return [Finding("early", sentence, "early_doubt")]


def cascades(found: pl.DataFrame, models: Labels) -> list[Finding]:
    """What routing by TRACE+ gains on random routing and on routing by the selected baseline, for
    the pair of models with the largest gain.
    """
    means, _ = select_worthwhile(found)
    facts = means.filter(pl.col("router").is_null()).pivot("metric", index=KEYS, values="value")
    if means.is_empty() or TRACE_PLUS not in {*means["router"]}:
        return []
    gain = pl.col("large_right") - pl.col("small_right")
    pair = facts.sort(gain, descending=True, maintain_order=True).row(0, named=True)
    own = means.filter(small=pair["small"], large=pair["large"])
    plus = {row["metric"]: row for row in own.filter(router=TRACE_PLUS).iter_rows(named=True)}
    if "area" not in plus:
        return []
    rivals = [(plus["area"], "over_random", "at random")]
    rivals += [
        (row, "trace_plus_over", f"by {SELECTED}")
        for row in own.filter(router=PICKED, metric="area").iter_rows(named=True)
    ]
    return [
        Finding("cascade", sentence, "cascades")
        for row, column, how in rivals
        if (sentence := _routed(row, column, how, pair, models))
    ]


def _routed(row: Mapping, column: str, how: str, pair: Mapping, models: Labels) -> str | None:
    value, result = row[column], outcome(row[f"{column}_low"], row[f"{column}_high"])
    if value is None or result is None:
        return None
    words = {"won": "more", "tied": "measurably neither more nor fewer", "lost": "fewer"}
    return (
        f"Sending the answers that TRACE+ doubts from {models[pair['small']]} to "
        f"{models[pair['large']]} gets {words[result]} of them right than sending them {how} "
        f"(mean accuracy {value:+.3f}, {interval(row, f'{column}_')})."
    )
