"""The data of the explorer's page: plain values, column by column."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tracecal.explorer.cascades import apply_guarantees
from tracecal.explorer.columns import ANSWER, HELD_OUT, PLACE, PROBABILITY, SCORE, SPLIT
from tracecal.explorer.part_places import split_tokens
from tracecal.features.operators import WINDOW

# Tokens above this quantile of all tokens on the page get the darkest shade.
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

    Parameters
    ----------
    answers : polars.DataFrame
        Answers with their `model` and `task`, the columns of `tracecal.explorer.columns`, and a
        column per estimator and prefix.
    estimators : sequence of mapping
        Their id, label, family and role.
    models, tasks : mapping
        Labels by slug, in the order in which the page lists them.
    run : str
        The name of the run or file.
    total : int
        How many answers the page's were chosen from.
    main : str, optional
        The model whose answers the page opens on.
    split : int or None
        The split that held answers out; None for the answers of a file.
    parents : polars.DataFrame, optional
        The answers that parts belong to.
    guarantees : polars.DataFrame, optional
        The guarantees of cascades, see `apply_guarantees`.
    use : str, optional
        The estimator that the page begins with (default: TRACE+).
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
        "cascades": apply_guarantees(answers, guarantees, models),
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


def darkest(values: pl.Series) -> float:
    """The value (nats) from which a token is shaded darkest; 1 where all are nearly 0."""
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
