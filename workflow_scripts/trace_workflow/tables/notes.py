"""Notes that several tables share: how many answers, which marks, which metrics."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from trace_workflow.tables.captions import PRINTED, count, listed, note
from trace_workflow.tables.settings import Frames, Labels, Settings
from trace_workflow.tables.table import ABSENT, Better, Column
from tracecal.estimators.entry import Entry

FEWER = "‡"
# The factor by which a fit's weights should shrink at most, and the share of the explainable
# variation that it is expected to explain: the defaults of Riley et al. 2020 (BMJ 368:m441).
# A penalty asks for no fewer answers: with few its own size is a matter of chance (Riley et al.
# 2021).
SHRINKAGE, EXPLAINED = 0.9, 0.15
COUNTED = "Answers, and how many are correct: see the main comparison."
SCOPE = ("model", "task", "estimator")
# The share of a task's answers that an estimator scores, by SCOPE, where it is below 1.
Fewer = Mapping[tuple[str, str, str], float]


def fewer(frames: Frames, settings: Settings) -> Fewer:
    """A table's estimators that do not score every answer, from `averages`."""
    ids = [entry.id for entry in settings.estimators]
    pairs = frames["averages"].filter(pl.col("study").is_null(), metric="brier")
    shares = pairs.select(*SCOPE, share=pl.col("n") / pl.col("n").max().over("model", "task"))
    rows = settings.of_pairs(shares).filter(pl.col("share") < 1, pl.col("estimator").is_in(ids))
    share_of = {tuple(key): share for *key, share in rows.iter_rows()}
    keys = [(*pair, id) for pair in settings.pairs for id in ids]
    return {key: share_of[key] for key in keys if key in share_of}


def fewer_in(missing: Collection[tuple[str, str, str]], estimator: str, *scope: str) -> pl.Expr:
    """Whether a row's estimator, in the column `estimator`, is `missing` answers.

    `scope` names the other columns of SCOPE that the rows have; without it any pair counts.
    """
    if not missing:
        return pl.lit(False)
    places = [SCOPE.index(column) for column in (*scope, "estimator")]
    keys = {"\n".join(key[place] for place in places) for key in missing}
    return pl.concat_str(*scope, estimator, separator="\n").is_in(sorted(keys)).fill_null(False)


def footnotes(missing: Fewer, settings: Settings) -> list[str]:
    """Explains the mark of estimators that do not score every answer."""
    labels = {entry.id: entry.label for entry in settings.estimators}
    parts = [
        f"{labels[estimator]} on {settings.pair(model, task)} ({1 - share:.1%} of the answers)"
        for (model, task, estimator), share in missing.items()
    ]
    return note(f"{FEWER} Without a score for some answers", parts)


def notes(
    frames: Frames, settings: Settings, shares: Sequence[float] = (), pooled: bool = False
) -> list[str]:
    """How many answers are right, and a warning where a fit has too few; from `accuracy`.

    There is a fit for each task, or one of all tasks (`pooled`).
    """
    counted = rows(frames, settings)
    right = [
        f"{settings.pair(row['model'], row['task'])} {row['correct']} of {row['n']} "
        f"({row['accuracy']:.3f})"
        for row in counted
    ]
    fits = [{"task": None} | total(counted)] if pooled else counted
    return [
        f"Correct answers (accuracy): {'; '.join(right)}.",
        *incomplete(counted, settings),
        *too_few(fits, settings, shares),
    ]


def elsewhere(
    frames: Frames, settings: Settings, shares: Sequence[float] = (), pooled: bool = False
) -> list[str]:
    """In place of `notes` below a table that is not the main comparison, which lists the counts."""
    counted = rows(frames, settings)
    fits = [{"task": None} | total(counted)] if pooled else counted
    return [COUNTED, *too_few(fits, settings, shares)]


def total(counted: Sequence[Mapping]) -> dict[str, int]:
    """`n` and `correct`, summed over rows of `accuracy`."""
    return {name: sum(row[name] for row in counted) for name in ("n", "correct")}


def rows(frames: Frames, settings: Settings) -> list[dict]:
    """The rows of `accuracy` for a table's pairs, in the order of its models and tasks."""
    by_pair = {(row["model"], row["task"]): row for row in frames["accuracy"].iter_rows(named=True)}
    return [by_pair[pair] for pair in settings.pairs if pair in by_pair]


def incomplete(counts: Sequence[Mapping], settings: Settings) -> list[str]:
    """Notes on answers from files that lack questions or entropies, and on parts that answers lack,
    from rows of `accuracy`.

    `settings.more` has by task of parts, under 'missing', what a missing one counts as.
    """
    missing = settings.more.get("missing", {})
    left_out = [row for row in counts if row["task"] not in missing]
    parts_left_out = [row for row in counts if missing.get(row["task"]) == "unanswered"]
    counted_wrong = [row for row in counts if missing.get(row["task"]) == "wrong"]
    sentences = [
        ("unanswered", left_out, True, "Answers' files leave out questions"),
        ("unanswered", parts_left_out, True, "Parts that answers lack are left out"),
        ("unanswered", counted_wrong, False, "Parts that answers lack count as wrong"),
        (
            "without_entropy",
            counts,
            False,
            f"{ABSENT} Without entropies, which TRACE needs, are answers",
        ),
    ]
    notes = []
    for column, concerned, beside, sentence in sentences:
        parts = [
            f"{settings.pair(row['model'], row['task'])} ({row[column]} of "
            f"{row['n'] + (row[column] if beside else 0)})"
            for row in concerned
            if row[column]
        ]
        notes += note(sentence, parts)
    return notes


def too_few(
    counts: Iterable[Mapping], settings: Settings, shares: Sequence[float] = ()
) -> list[str]:
    """A warning where a calibration part has fewer answers than its fit `needs`.

    `counts` have `model`, `task` (null: all), `n` and `correct`. `settings.more` has the most
    `weights` of any fit (0: nothing is fitted) and the `calibration_share`, the share of answers it
    is fitted on unless `shares` are given.
    """
    weights, shares = settings.more["weights"], shares or [settings.more["calibration_share"]]
    few = []
    for row in counts:
        rarer = min(row["correct"], row["n"] - row["correct"])
        wanted = needs(weights, rarer / row["n"])
        if wanted > round(min(shares) * row["n"]):
            sizes = [_span(shares, number) for number in (row["n"], rarer)]
            name = settings.pair(row["model"], row["task"]) if row["task"] else "all tasks together"
            few.append(
                f"{name} has {sizes[0]} ({sizes[1]} of the rarer class) and needs about "
                f"{wanted:.0f}"
                if math.isfinite(wanted)
                else f"{name} has answers of one class only"
            )
    warning = (
        f"Too few calibration answers for {count(weights, 'weight')} (Riley et al. 2020, "
        f"overfitting of at most {1 - SHRINKAGE:.0%}): "
    )
    return [f"{warning}{'; '.join(few)}."] if few else []


def needs(weights: int, share: float) -> float:
    """How many answers a fit of so many weights needs where one class has this `share`; infinite
    where it has none: criterion 1 of Riley et al. 2020.
    """
    if not weights:
        return 0
    if not share:
        return math.inf
    likelihood = share * math.log(share) + (1 - share) * math.log(1 - share)
    explained = EXPLAINED * (1 - math.exp(2 * likelihood))  # Cox and Snell's R²
    return weights / ((SHRINKAGE - 1) * math.log(1 - explained / SHRINKAGE))


def _span(shares: Sequence[float], number: int) -> str:
    """The parts of a number, from the first share's to the last's."""
    ends = dict.fromkeys(f"{share * number:.0f}" for share in (shares[0], shares[-1]))
    return " to ".join(ends)


def counts(frames: Frames, settings: Settings, scope: Sequence[str]) -> pl.DataFrame:
    """How many answers are `right`, of how many `answers`, and their `accuracy`, by `scope`.

    By model alone there is a row without a model, for all of them.
    """
    counted = pl.DataFrame(rows(frames, settings), schema=frames["accuracy"].schema)
    every = counted.with_columns(model=pl.lit(None, pl.String))
    parts = [counted, every] if list(scope) == ["model"] else [counted]
    sums = pl.concat(parts).group_by(scope)
    right, answers = pl.col("correct").sum(), pl.col("n").sum()
    return sums.agg(right=right, answers=answers, accuracy=right / answers)


# Sentences and columns that several tables share.


DEBIASED = "ece_debiased"
NAMES = {
    "brier": "Brier",
    "ece": "ECE",
    DEBIASED: "ECE (debiased)",
    "auroc": "AUROC",
    "auroc_calibrated": "AUROC (cal.)",
}
BETTER: dict[str, Better] = {
    "brier": "lower",
    "ece": "lower",
    "auroc": "higher",
    "auroc_calibrated": "higher",
}
METRICS = ("brier", "auroc")
# Where a win is claimed, the AUROC of calibrated probabilities is given beside that of raw scores.
CLAIMED = (*METRICS, "auroc_calibrated")
DIRECTION = (
    "AUROC ranks by the raw score where an estimator has one, as the paper does; the direction of "
    "TRACE+ is fitted. AUROC (cal.) ranks by every estimator's calibrated probability, whose "
    "direction is fitted for all alike: only a win there too cannot be due to the direction."
)
DEBIASED_IS = (
    "ECE (debiased): less what exact probabilities would have on as many answers in the same bins."
)
PARTLY = "†"
LEFT_OUT = (
    f"{PARTLY} Undefined in splits whose answers are all correct, all wrong or all without a "
    "score, which the mean leaves out"
)
BEAMS = "Beam scores read all beams of a search from the same prompt, K = {} beams"
# Flores et al. 2025: of two beams all three are functions of the difference of their scores.
ALIKE = ", of which Beam-Ratio, Beam-TailThinness and Beam Entropy order answers alike"
BEST_OF_COLUMN = (
    "Bold: best of the column; underlined: second best; ties, as printed, share the mark."
)
RISK = (
    "A token's risk is its entropy (nats), mean risk its average over the answer; the spike gap is "
    "how far the mean of its most uncertain window of four tokens exceeds that average."
)


def beam_notes(entries: Sequence[Entry], settings: Settings) -> list[str]:
    """How many beams the scores of beams among `entries` read; from `settings.more`, 'beams'."""
    if not any(entry.family == "beam" for entry in entries):
        return []
    beams = settings.more["beams"]
    return [f"{BEAMS.format(beams)}{ALIKE if beams == 2 else ''}."]


def method(
    table: str, entries: Sequence[Entry] = (), missing: Fewer | None = None, heading: str = "Method"
) -> Column:
    """The column of estimators' labels, as `table` prints them.

    Estimators in `entries` are cited where they have a source, those `missing` answers marked.
    """
    cited = {e.id: e.citation for e in entries if e.citation and e.role not in ("trace", "variant")}
    cite = pl.col("estimator").replace_strict(cited, default=None, return_dtype=pl.String)
    return Column(
        ("label",),
        heading,
        align="left",
        printed=named(table),
        cite=cite if cited else None,
        mark=unscored(missing, "estimator"),
    )


def named(table: str, estimator: str = "estimator", label: str = "label") -> pl.Expr:
    """The labels of the column `label`, or what `table` calls those estimators."""
    words = PRINTED.get(table, {})
    own = pl.col(estimator).replace_strict(words, default=None, return_dtype=pl.String)
    return pl.coalesce(own, label)


def unscored(missing: Fewer | None, estimator: str, *scope: str) -> pl.Expr:
    """Marks rows whose estimator is `missing` answers; columns as in `fewer_in`."""
    return marked((fewer_in(missing or {}, estimator, *scope), FEWER))


def partly(key: str) -> pl.Expr:
    """Marks values that are undefined in some splits, which their mean leaves out."""
    return marked((pl.col(f"{key}_undefined_splits") > 0, PARTLY))


def partly_note(
    parts: Mapping[str, pl.DataFrame], tasks: Labels, metrics: Sequence[str] = METRICS
) -> list[str]:
    """Explains that mark, from averages of single tasks; `parts` names what each frame is about."""
    named = [
        f"{NAMES[metric]}{part} on {listed(where)}"
        for part, averages in parts.items()
        for metric in metrics
        if (where := undefined(averages, metric, tasks))
    ]
    return note(LEFT_OUT, named)


def marked(*marks: tuple[pl.Expr, str]) -> pl.Expr:
    """The marks whose conditions a row meets, joined."""
    return pl.concat_str(
        pl.when(condition).then(pl.lit(mark)).otherwise(pl.lit("")) for condition, mark in marks
    )


def undefined(averages: pl.DataFrame, metric: str, tasks: Labels) -> list[str]:
    """The tasks on which `metric` is undefined in some splits, with the largest number of them."""
    counts = (
        averages.filter(metric=metric)
        .drop_nulls("task")
        .group_by("task")
        .agg(pl.col("undefined", "splits").max())
        .filter(pl.col("undefined") > 0)
        .sort("task")
    )
    return [f"{tasks[task]} ({n} of {splits} splits)" for task, n, splits in counts.iter_rows()]


def rows_by(frame: pl.DataFrame, *keys: str) -> Mapping[tuple, dict]:
    """The rows of a frame by their keys."""
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def summaries(averages: Mapping[str, Mapping]) -> dict[str, object]:
    """Columns of a row: the means by their name, then their `_sd` and `_undefined_splits`.

    The average of an estimator that has none is an empty mapping.
    """
    ends = {"": ("mean", None), "_sd": ("sd", None), "_undefined_splits": ("undefined", 0)}
    return {
        f"{name}{end}": average.get(key, default)
        for end, (key, default) in ends.items()
        for name, average in averages.items()
    }


def frame_of(rows: Sequence[Mapping]) -> pl.DataFrame:
    """A frame of rows with the same keys; a column without any value is numeric."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.cast({pl.Null: pl.Float64})
