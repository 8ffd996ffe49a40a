"""How many answers a table rests on: the right ones, those with a score, those that a fit has."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from tracecal.tables.settings import Frames, Settings
from tracecal.tables.words import count, listed
from tracecal.writers.table import ABSENT

FEWER = "‡"
# As a rule of thumb a logistic regression needs so many events per weight (Peduzzi et al. 1996).
PER_WEIGHT = 10
SCOPE = ("model", "task", "estimator")
# The share of a task's answers that an estimator scores, by SCOPE, where it is not all.
Fewer = Mapping[tuple[str, str, str], float]


def fewer(frames: Frames, settings: Settings) -> Fewer:
    """A table's estimators that are scored on fewer answers than there are, from `averages`."""
    ids = [entry.id for entry in settings.estimators]
    pairs = frames["averages"].filter(pl.col("study").is_null(), metric="brier")
    shares = pairs.select(*SCOPE, share=pl.col("n") / pl.col("n").max().over("model", "task"))
    rows = settings.of_pairs(shares).filter(pl.col("share") < 1, pl.col("estimator").is_in(ids))
    found = {(model, task, estimator): share for model, task, estimator, share in rows.iter_rows()}
    order = {(*pair, id): None for pair in settings.pairs for id in ids}
    return {key: found[key] for key in order if key in found}


def shown(missing: Fewer, frame: pl.DataFrame, **columns: str) -> Fewer:
    """Those of `missing` that a row of `frame` is about: its columns, by their part of SCOPE."""
    places = [SCOPE.index(part) for part in columns]
    keys = set(frame.select(columns.values()).iter_rows())
    return {key: share for key, share in missing.items() if tuple(key[p] for p in places) in keys}


def fewer_in(missing: Fewer, **columns: str) -> pl.Expr:
    """Whether a row is about an estimator of `missing`; columns as in `shown`."""
    if not missing:
        return pl.lit(False)
    places = [SCOPE.index(part) for part in columns]
    keys = {"\n".join(key[p] for p in places) for key in missing}
    return pl.concat_str(columns.values(), separator="\n").is_in(sorted(keys)).fill_null(False)


def footnotes(missing: Fewer, settings: Settings) -> list[str]:
    """What the mark of those scored on fewer answers says."""
    labels = {entry.id: entry.label for entry in settings.estimators}
    parts = [
        f"{labels[estimator]} on {settings.pair(model, task)} ({share:.1%} of the answers)"
        for (model, task, estimator), share in missing.items()
    ]
    return [f"{FEWER} Without a score for some answers: {'; '.join(parts)}."] if parts else []


def notes(
    frames: Frames, settings: Settings, shares: Sequence[float] = (), pooled: bool = False
) -> list[str]:
    """How many answers are right, and a warning where a fit has too few; from `accuracy`.

    Fits are of each task, or `pooled`.
    """
    counted = rows(frames, settings)
    right = [
        f"{settings.pair(row['model'], row['task'])} {row['correct']} of {row['n']} "
        f"({row['accuracy']:.3f})"
        for row in counted
    ]
    together = {"task": None} | {
        name: sum(row[name] for row in counted) for name in ("n", "correct")
    }
    return [
        f"Right answers (accuracy): {'; '.join(right)}.",
        *incomplete(counted, settings),
        *too_few([together] if pooled else counted, settings, shares),
    ]


def rows(frames: Frames, settings: Settings) -> list[Mapping]:
    """The rows of `accuracy` that a table is about, in the order of its models and tasks."""
    found = {(row["model"], row["task"]): row for row in frames["accuracy"].iter_rows(named=True)}
    return [found[pair] for pair in settings.pairs if pair in found]


def incomplete(counts: Sequence[Mapping], settings: Settings) -> list[str]:
    """What answers from files lack, questions or entropies; `counts` are rows of `accuracy`."""
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
        notes += [f"{sentence}: {'; '.join(parts)}."] * bool(parts)
    return notes


def too_few(
    counts: Iterable[Mapping], settings: Settings, shares: Sequence[float] = ()
) -> list[str]:
    """A warning where a calibration part holds too few of the rarer kind of answer.

    `counts` have `model`, `task` (null: all), `n` and `correct`. `settings.more` says how many
    `weights` a fit has at most (0: nothing is fitted), and on which `calibration_share` of the
    answers it is made, if not on `shares`.
    """
    weights, shares = settings.more["weights"], shares or [settings.more["calibration_share"]]
    few = []
    for row in counts:
        rarer = [share * min(row["correct"], row["n"] - row["correct"]) for share in shares]
        if min(rarer) < PER_WEIGHT * weights:
            ends = " to ".join(dict.fromkeys(f"{each:.0f}" for each in (rarer[0], rarer[-1])))
            name = settings.pair(row["model"], row["task"]) if row["task"] else "all tasks together"
            few.append(f"{name} (about {ends})")
    warning = (
        f"Too few to say: a fit has up to {count(weights, 'weight')} here, and with fewer than "
        f"{PER_WEIGHT} answers of the rarer kind, right or wrong, for each of them in the "
        "calibration part it depends on chance. This applies to "
    )
    return [f"{warning}{listed(few)}."] if few else []


def counts(frames: Frames, settings: Settings, scope: Sequence[str]) -> pl.DataFrame:
    """By the columns `scope` how many answers are `right`, of how many `answers`.

    By model alone there is a row without one, about all of them.
    """
    counted = pl.DataFrame(rows(frames, settings), schema=frames["accuracy"].schema)
    every = counted.with_columns(model=pl.lit(None, pl.String))
    parts = [counted, every] if list(scope) == ["model"] else [counted]
    sums = pl.concat(parts).group_by(scope)
    return sums.agg(right=pl.col("correct").sum(), answers=pl.col("n").sum())
