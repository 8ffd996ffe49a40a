"""The data of the explorer's page: the columns of its answers, and plain values of them.

1. `choose_answers` chooses answers where there is no room for all.
2. `contents` gives their data, for `page.page`.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import polars as pl

from tracecal.estimators.features import WINDOW
from tracecal.estimators.operators import window_start
from tracecal.statistics.percentages import confidence_text, percent, rate_text

# Where a part stands, None for whole answers: the task and the id of its answer, its name, and its
# tokens [start, end) there.
PLACE = {
    "parent_task": pl.String,
    "parent_id": pl.String,
    "part": pl.String,
    "start": pl.Int32,
    "end": pl.Int32,
}
NO_PLACE = {name: pl.lit(None, dtype) for name, dtype in PLACE.items()}
# Columns that a part shares with its whole answer.
OF_PARENT = ("prompt", "tokens", "surprisal", "entropy")
ANSWER = ("model", "task", "example_id")
# The first token, counted from 0, of the window with the highest mean entropy.
PEAK = window_start(pl.col("entropy"), WINDOW).cast(pl.Int32)

TRACE = ["example_id", "prompt", "tokens", "surprisal", "entropy"]
TASK = ["example_id", "group_id", "language", "question", "context", "references", "distractors"]
LABEL = ["example_id", "prediction", "correct", "error_kind"]
PREDICTION = ["example_id", "estimator", "split", "probability"]
# Prefixes of an estimator's columns.
PROBABILITY, HELD_OUT, SCORE = "probability.", "held_out.", "score."
# The split whose held-out answers the overview shows: the one that tests thresholds.
SPLIT = 0

# Tokens above this quantile of all tokens on the page get the darkest shade.
DARKEST = 0.99
DIGITS = 4
EXPLORED = 10_000  # answers that a page shows at most, unless stated


def choose_answers(answers: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """At most `limit` rows of `answers`, sorted by `model`, `task` and `example_id`.

    Every (model, task) pair contributes equally many, a small one all of its rows. The choice
    depends only on seed, task and example: the page shows all models on the same questions, and a
    smaller limit shows a subset of a larger one's answers. With the columns PLACE the parts of an
    answer are chosen together.
    """
    has_parts = "parent_id" in answers.columns
    task = pl.coalesce("parent_task", "task") if has_parts else pl.col("task")
    answer = pl.coalesce("parent_id", "example_id") if has_parts else pl.col("example_id")
    hashes = [
        sha256(f"{seed}:{task_name}:{example_id}".encode()).hexdigest()
        for task_name, example_id in answers.select(task, answer).iter_rows()
    ]
    return (
        answers.with_columns(answer=answer, hash=pl.Series(hashes, dtype=pl.String))
        .with_columns(rank=pl.col("hash").rank("dense").over("model", "task"))
        .sort("rank", "task", "model", "answer")
        .with_row_index("row")
        # Leave out an answer if only some of its parts fit.
        .filter(pl.col("row").max().over("model", "task", "answer") < limit)
        .drop("hash", "rank", "answer", "row")
        .sort("model", "task", "example_id")
    )


def contents(
    answers: pl.DataFrame,
    estimators: Sequence[Mapping[str, str]],
    models: Mapping[str, str],
    tasks: Mapping[str, str],
    run: str,
    total: int,
    main: str | None = None,
    split: int | None = SPLIT,
    parents: pl.DataFrame | None = None,
    use: str | None = None,
    decision: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The page's data, ready for JSON.

    `answers` have their `model` and `task`, the columns TRACE, TASK and LABEL, and a column per
    estimator and prefix. `models` and `tasks` are labels by slug, in the page's order, and `run` is
    the name of the run or file. The answers were chosen from `total` ones. The page opens on the
    model `main` and begins with the estimator `use`, by default TRACE+. `split` held answers out
    (None for those of a file), `parents` are the answers that parts belong to, and `decision` says
    which answers are kept (see `page_answers.decide` and `kept_share`).
    """
    labels = {"model": models, "task": tasks}
    slugs = {name: [slug for slug in labels[name] if slug in {*answers[name]}] for name in labels}
    ids = [entry["id"] for entry in estimators]
    separate = {*slugs, *PLACE}
    columns = [name for name in answers.columns if "." not in name and name not in separate]
    shades = {name: darkest(answers[name]) for name in ("surprisal", "entropy")}
    places: dict[str, Any] = {}
    parent_columns: dict[str, Any] = {}
    if parents is not None:
        answers, places = split_tokens(answers, parents)
        names = [name for name in parents.columns if name not in ANSWER]
        parent_columns = {name: _plain(parents[name]) for name in names}
    # Each passage is stored once, however many questions and models share it.
    contexts = sorted(set(answers["context"].drop_nulls()))
    return {
        "run": run,
        "total": total,
        "main": main,
        "use": use,
        "decision": decision,
        "window": WINDOW,
        "split": split,
        "named": {
            name: [{"id": slug, "label": labels[name][slug]} for slug in slugs[name]]
            for name in slugs
        },
        "estimators": [
            {name: entry[name] for name in ("id", "label", "family", "role")}
            for entry in estimators
        ],
        "contexts": contexts,
        "darkest": shades,
        "parents": parent_columns,
        "places": places,
        "answers": {
            **{name: _indices(answers[name], slugs[name]) for name in slugs},
            **{name: _plain(answers[name]) for name in columns},
            "context": _indices(answers["context"], contexts),
            **{
                prefix.rstrip("."): {id: _plain(answers[prefix + id]) for id in ids}
                for prefix in (PROBABILITY, HELD_OUT, SCORE)
            },
        },
    }


def kept_share(
    guarantee: Mapping[str, Any], probability: Iterable[float | None], of_task: str = ""
) -> dict[str, Any] | None:
    """The `decision` of a page of labelled answers: its slider keeps as many as a guarantee does.

    The guarantee ranks by another fit than `probability`. None without a threshold.
    """
    ranked = sorted((value for value in probability if value is not None), reverse=True)
    if not ranked or guarantee["threshold"] is None:
        return None
    rate, share = guarantee["error_rate"], guarantee["coverage"]
    about = (
        f"Guaranteed{of_task}: keep the surest {percent(share)}, at most {rate_text(rate)} of them "
        f"wrong {confidence_text(guarantee['confidence'])}. The slider keeps as many; the "
        "guarantee itself ranks by another fit."
    )
    threshold = ranked[max(round(share * len(ranked)), 1) - 1]
    return {"rate": rate, "threshold": threshold, "about": about, "kept": None}


def darkest(values: pl.Series) -> float:
    """Return the value (nats) of the darkest shade; 1 if all values are nearly 0."""
    return round(values.explode().cast(pl.Float64).quantile(DARKEST) or 0.0, 1) or 1.0


def _indices(values: pl.Series, categories: Sequence[str]) -> list[int | None]:
    index = {value: i for i, value in enumerate(categories)}
    return [index.get(value) for value in values]


def _plain(values: pl.Series) -> list[Any]:
    """Values for JSON: four significant digits; a token's nats to four decimals."""
    if values.dtype == pl.Float64:
        values = values.round_sig_figs(DIGITS)
    elif values.dtype == pl.List(pl.Float32):
        values = values.cast(pl.List(pl.Float64)).list.eval(pl.element().round(DIGITS))
    return values.to_list()


def split_tokens(
    answers: pl.DataFrame, parents: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Remove from `answers` (with the columns PLACE) the tokens that their `parents` hold.

    Also returns where they are: the row of an answer, the row of its parent, the name of the part,
    and its tokens [start, end) there. The last three are None for the parent itself.
    """
    places = answers.with_row_index("row").select(
        *("row", "model", "part", "start", "end"),
        task=pl.coalesce("parent_task", "task"),
        example_id=pl.coalesce("parent_id", "example_id"),
    )
    parent_rows = parents.select(ANSWER).with_row_index("parent")
    places = places.join(parent_rows, on=ANSWER, maintain_order="left")
    in_parent = pl.int_range(pl.len()).is_in(places["row"].implode())
    remaining = [pl.when(~in_parent).then(name).alias(name) for name in OF_PARENT]
    columns = places.select("row", "parent", "part", "start", "end")
    return answers.with_columns(remaining), columns.to_dict(as_series=False)
