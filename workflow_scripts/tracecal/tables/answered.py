"""How many answers a table is based on: correct ones, scored ones, and those of a fit."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from tracecal.tables.settings import Frames, Settings
from tracecal.tables.words import count, listed, note
from tracecal.writers.table import ABSENT

FEWER = "‡"
# Rule of thumb for a logistic regression: events per weight (Peduzzi et al. 1996).
PER_WEIGHT = 10
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
        f"{labels[estimator]} on {settings.pair(model, task)} ({share:.1%} of the answers)"
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
        f"Right answers (accuracy): {'; '.join(right)}.",
        *incomplete(counted, settings),
        *too_few(fits, settings, shares),
    ]


def total(counted: Sequence[Mapping]) -> dict[str, int]:
    """`n` and `correct`, summed over rows of `accuracy`."""
    return {name: sum(row[name] for row in counted) for name in ("n", "correct")}


def rows(frames: Frames, settings: Settings) -> list[dict]:
    """The rows of `accuracy` for a table's pairs, in the order of its models and tasks."""
    by_pair = {(row["model"], row["task"]): row for row in frames["accuracy"].iter_rows(named=True)}
    return [by_pair[pair] for pair in settings.pairs if pair in by_pair]


def incomplete(counts: Sequence[Mapping], settings: Settings) -> list[str]:
    """Notes on answers from files that lack questions or entropies, from rows of `accuracy`."""
    sentences = {
        "unanswered": "Answers' files leave out questions",
        "without_entropy": f"{ABSENT} Without entropies, which TRACE needs, are answers",
    }
    notes = []
    for column, sentence in sentences.items():
        parts = [
            f"{settings.pair(row['model'], row['task'])} ({row[column]} of "
            f"{row['n'] + (row['unanswered'] if column == 'unanswered' else 0)})"
            for row in counts
            if row[column]
        ]
        notes += note(sentence, parts)
    return notes


def too_few(
    counts: Iterable[Mapping], settings: Settings, shares: Sequence[float] = ()
) -> list[str]:
    """A warning where a calibration part has too few answers of the rarer kind, right or wrong.

    `counts` have `model`, `task` (null: all), `n` and `correct`. `settings.more` has the most
    `weights` of any fit (0: nothing is fitted) and the `calibration_share`, the share of answers it
    is fitted on unless `shares` are given.
    """
    weights, shares = settings.more["weights"], shares or [settings.more["calibration_share"]]
    few = []
    for row in counts:
        rarer = [share * min(row["correct"], row["n"] - row["correct"]) for share in shares]
        if min(rarer) < PER_WEIGHT * weights:
            ends = " to ".join(dict.fromkeys(f"{number:.0f}" for number in (rarer[0], rarer[-1])))
            name = settings.pair(row["model"], row["task"]) if row["task"] else "all tasks together"
            few.append(f"{name} (about {ends})")
    warning = (
        f"Too few to say: a fit has up to {count(weights, 'weight')} here, and with fewer than "
        f"{PER_WEIGHT} answers of the rarer kind, right or wrong, for each of them in the "
        "calibration part it depends on chance. This applies to "
    )
    return [f"{warning}{listed(few)}."] if few else []


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
