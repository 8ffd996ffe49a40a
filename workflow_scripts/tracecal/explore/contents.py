"""The data of the explorer's page: plain values, column by column."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tracecal.explore.answers import HELD_OUT, PROBABILITY, SCORE, SPLIT
from tracecal.explore.cascaded import cascaded
from tracecal.explore.wholes import ANSWER, PLACE, apart
from tracecal.features.operators import WINDOW

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
    wholes: pl.DataFrame | None = None,
    promises: pl.DataFrame | None = None,
) -> dict[str, Any]:
    """The page's data, ready for JSON.

    `answers` are those of `read_answers` with `model` and `task`, which become indices into the
    lists of those shown; `estimators` have id, label, family and role; `models` and `tasks` map
    slugs to labels; `total` is the number of answers chosen from, `main` the model whose answers
    the page opens on; `split` the one that held answers out, null for the answers of a file;
    `wholes` those that parts are of (`read_wholes`); `promises` those about cascades (`cascaded`).
    """
    shown = {name: sorted(set(answers[name])) for name in ("model", "task")}
    labels = {"model": models, "task": tasks}
    ids = [entry["id"] for entry in estimators]
    left_out = {*shown, *PLACE}
    answer_columns = [one for one in answers.columns if "." not in one and one not in left_out]
    shades = {name: darkest(answers[name]) for name in ("surprisal", "entropy")}
    places: dict[str, Any] = {}
    held: dict[str, Any] = {}
    if wholes is not None:
        answers, places = apart(answers, wholes)
        held = {name: _plain(wholes[name]) for name in wholes.columns if name not in ANSWER}
    # Each passage is stored once, however many questions and models share it.
    contexts = sorted(set(answers["context"].drop_nulls()))
    return {
        "run": run,
        "total": total,
        "main": main,
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
        "wholes": held,
        "places": places,
        "cascades": cascaded(answers, promises, models),
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
