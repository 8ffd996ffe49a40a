"""What the explorer shows: answers, their parts, cascades, and which of many are chosen."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import polars as pl

from tracecal.estimators.entry import TRACE_PLUS
from tracecal.features.operators import WINDOW, window_start

# Of a part, or null: the task and the id of its answer, its name and its tokens [start, end) there.
PLACE = {
    "parent_task": pl.String,
    "parent_id": pl.String,
    "part": pl.String,
    "start": pl.Int32,
    "end": pl.Int32,
}
NO_PLACE = {name: pl.lit(None, dtype) for name, dtype in PLACE.items()}
# What a part's row leaves to its whole answer.
OF_PARENT = ("prompt", "tokens", "surprisal", "entropy")
ANSWER = ("model", "task", "example_id")
PEAK = window_start(pl.col("entropy"), WINDOW).cast(pl.Int32)


def split_tokens(
    answers: pl.DataFrame, parents: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """`answers` (with the columns PLACE) without the tokens that their parent answers hold, and
    where these are: the row of an answer, that of its parent, the part's name, and its tokens
    [start, end) there. The last three are null of a parent answer itself.
    """
    own = answers.with_row_index("row").select(
        "row",
        "model",
        "part",
        "start",
        "end",
        task=pl.coalesce("parent_task", "task"),
        example_id=pl.coalesce("parent_id", "example_id"),
    )
    numbered = parents.select(ANSWER).with_row_index("parent")
    found = own.join(numbered, on=ANSWER, maintain_order="left")
    elsewhere = pl.int_range(pl.len()).is_in(found["row"].implode())
    places = found.select("row", "parent", "part", "start", "end")
    left = [pl.when(~elsewhere).then(name).alias(name) for name in OF_PARENT]
    return answers.with_columns(left), places.to_dict(as_series=False)


# Answers for the explorer: question, answer, label and each estimator's confidence.


TRACE = ["example_id", "prompt", "tokens", "surprisal", "entropy"]
TASK = ["example_id", "group_id", "language", "question", "context", "references", "distractors"]
LABEL = ["example_id", "prediction", "correct", "error_kind"]
PREDICTION = ["example_id", "estimator", "split", "probability"]
PROBABILITY, HELD_OUT, SCORE = "probability.", "held_out.", "score."
# The split whose held-out answers the overview shows: the one that thresholds are tested on.
SPLIT = 0

# Which of the explorer's answers a cascade's threshold would keep, and which it would escalate.


def cascaded(
    answers: pl.DataFrame, guarantees: pl.DataFrame | None, models: Mapping[str, str]
) -> dict[str, Any]:
    """`told`: by 'model/task' the `guarantees`, rows of `analyse.cascade_promises`, with the large
    model's label; `kept`: of each answer whether each of these keeps it.

    The latter is null where the answer calibrated the fit that the thresholds are for. An answer
    without a probability is not kept, nor any where there is no threshold.
    """
    told: dict[str, list[dict[str, Any]]] = {}
    for row in guarantees.iter_rows(named=True) if guarantees is not None else ():
        words = "at most {:g} below" if row["promise"] == "below" else "at least {:g}"
        shown = {"large": models[row["large"]], "promise": words.format(row["promised"])}
        own = told.setdefault(f"{row['small']}/{row['task']}", [])
        own.append(shown | {"threshold": row["threshold"]})
    if not told:
        return {"told": {}, "kept": []}
    columns = ["model", "task", HELD_OUT + TRACE_PLUS, PROBABILITY + TRACE_PLUS]
    kept: list[list[bool] | None] = []
    for model, task, held_out, mean in answers.select(columns).iter_rows():
        thresholds = [one["threshold"] for one in told.get(f"{model}/{task}", ())]
        seen = held_out is None and mean is not None
        kept_at = [held_out is not None and t is not None and held_out >= t for t in thresholds]
        kept.append(None if seen else kept_at)
    return {"told": told, "kept": kept}


# The data of the explorer's page: plain values, column by column.


# Tokens above this quantile of all those shown get the darkest shade.
DARKEST = 0.99
DIGITS = 4


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
    guarantees: pl.DataFrame | None = None,
    use: str | None = None,
) -> dict[str, Any]:
    """The page's data, ready for JSON.

    `answers` are those of `read_answers` with `model` and `task`, which become indices into the
    lists of those shown; `estimators` have id, label, family and role; `models` and `tasks` map
    slugs to labels, in the order in which they are listed; `total` is the number of answers chosen
    from, `main` the model whose answers the page opens on; `split` the one that held answers out,
    null for the answers of a file; `parents` those that parts are of (`read_parents`); `guarantees`
    those about cascades (`cascaded`); `use` is the estimator that the page begins with, null:
    TRACE+.
    """
    labels = {"model": models, "task": tasks}
    found = {name: {*answers[name]} for name in labels}
    shown = {name: [slug for slug in labels[name] if slug in found[name]] for name in labels}
    ids = [entry["id"] for entry in estimators]
    left_out = {*shown, *PLACE}
    answer_columns = [one for one in answers.columns if "." not in one and one not in left_out]
    shades = {name: darkest(answers[name]) for name in ("surprisal", "entropy")}
    places: dict[str, Any] = {}
    held: dict[str, Any] = {}
    if parents is not None:
        answers, places = split_tokens(answers, parents)
        held = {name: _plain(parents[name]) for name in parents.columns if name not in ANSWER}
    # Each passage is stored once, however many questions and models share it.
    contexts = sorted(set(answers["context"].drop_nulls()))
    return {
        "run": run,
        "total": total,
        "main": main,
        "use": use,
        "window": WINDOW,
        "split": split,
        "named": {
            name: [{"id": slug, "label": labels[name][slug]} for slug in slugs]
            for name, slugs in shown.items()
        },
        "estimators": [
            {name: entry[name] for name in ("id", "label", "family", "role")}
            for entry in estimators
        ],
        "contexts": contexts,
        "darkest": shades,
        "parents": held,
        "places": places,
        "cascades": cascaded(answers, guarantees, models),
        "answers": {
            **{name: _places(answers[name], slugs) for name, slugs in shown.items()},
            **{name: _plain(answers[name]) for name in answer_columns},
            "context": _places(answers["context"], contexts),
            **{
                prefix.rstrip("."): {id: _plain(answers[prefix + id]) for id in ids}
                for prefix in (PROBABILITY, HELD_OUT, SCORE)
            },
        },
    }


def darkest(values: pl.Series) -> float:
    """The value (nats) from which a token is shaded darkest; 1 where all are nearly 0."""
    return round(values.explode().cast(pl.Float64).quantile(DARKEST) or 0.0, 1) or 1.0


def _places(values: pl.Series, among: Sequence[str]) -> list[int | None]:
    place = {value: at for at, value in enumerate(among)}
    return [place.get(value) for value in values]


def _plain(values: pl.Series) -> list[Any]:
    """Values for JSON: four significant digits; a token's nats to four decimals."""
    if values.dtype == pl.Float64:
        values = values.round_sig_figs(DIGITS)
    elif values.dtype == pl.List(pl.Float32):
        values = values.cast(pl.List(pl.Float64)).list.eval(pl.element().round(DIGITS))
    return values.to_list()


# Choosing the answers that the explorer shows where there are too many for one page.


def choose_answers(answers: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """At most `limit` rows of `answers`, sorted by `model`, `task` and `example_id`.

    Every (model, task) pair contributes equally many, a small one all of its rows. The choice
    depends only on seed, task and example: models are shown on the same questions, and a smaller
    limit shows a subset of a larger one's answers. Where `answers` has the columns PLACE, an
    answer's parts are shown together, of the answers that are shown themselves.
    """
    of_parts = "parent_id" in answers.columns
    task = pl.coalesce("parent_task", "task") if of_parts else pl.col("task")
    answer = pl.coalesce("parent_id", "example_id") if of_parts else pl.col("example_id")
    named = answers.with_columns(answer=answer)
    ranks = [
        sha256(f"{seed}:{task}:{example}".encode()).hexdigest()
        for task, example in answers.select(task, answer).iter_rows()
    ]
    return (
        named.with_columns(rank=pl.Series(ranks, dtype=pl.String))
        .with_columns(place=pl.col("rank").rank("dense").over("model", "task"))
        .sort("place", "task", "model", "answer")
        .with_row_index("at")
        # An answer of which only some parts would fit is left out.
        .filter(pl.col("at").max().over("model", "task", "answer") < limit)
        .drop("rank", "place", "answer", "at")
        .sort("model", "task", "example_id")
    )
