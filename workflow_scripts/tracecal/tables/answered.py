"""How many answers a table is based on: correct ones, scored ones, and those of a fit."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from tracecal.tables.settings import Frames, Settings
from tracecal.tables.words import count, note
from tracecal.writers.table import ABSENT

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
                f"{name} needs about {wanted:.0f} calibration answers, has {sizes[0]} ({sizes[1]} "
                "of the rarer class)"
                if math.isfinite(wanted)
                else f"{name} has answers of one class only"
            )
    warning = (
        f"Sample too small for {count(weights, 'weight')} (Riley et al. 2020, overfitting of at "
        f"most {1 - SHRINKAGE:.0%}): "
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
