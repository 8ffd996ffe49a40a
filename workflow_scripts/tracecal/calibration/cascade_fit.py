"""The cascade of two models from two files of labelled answers: its worth and its thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.calibrator import FittedOn, default_estimator, undecided
from tracecal.calibration.cascades import answer_costs, cascade, routed
from tracecal.calibration.fit import FitSettings, Labelled, calibrate_answers, labelled
from tracecal.calibration.guarantees import cascade_guarantee, error_level, paired_parts
from tracecal.calibration.predictions import calibrate_all, picks, probabilities, with_picked
from tracecal.errors import InputError
from tracecal.estimators.entry import PICKED, TRACE_PLUS
from tracecal.estimators.registry import ESTIMATORS

Price = Mapping[str, float]


class Cascaded(NamedTuple):
    """`found` has the rows of `analyse.cascade.ROWS`; `stored` is the content of the small model's
    calibrator, of whose estimator `router` the key `cascade` holds the thresholds.
    """

    found: pl.DataFrame
    stored: dict[str, Any]
    router: str


def cascade_answers(
    small: pl.DataFrame,
    large: pl.DataFrame,
    settings: FitSettings,
    prices: Sequence[Price] | None = None,
    task: str = "cascade",
    vocabulary: int | None = None,
) -> Cascaded:
    """The cascade of two models that answered the same questions, matched by `example_id`.

    Both have the columns of `RECORDS`; questions that lack an answer or a label in one are left
    out. `prices` are those of the small and the large model, per million tokens. Raises
    `InputError` as `calibrate_answers`.
    """
    told = large.filter(pl.col("correct").is_not_null())
    both = small.join(told.select("example_id"), on="example_id", how="semi")
    if both.is_empty():
        raise InputError(
            "the two files share no question with a label in both: answers to one question need "
            "the same id. Give its path with --id."
        )
    known = labelled(both, task, settings)
    answers = _paired(known, small, told, prices)
    method = settings.calibration.method
    predictions, _ = calibrate_all(
        known.frame, known.splits, known.estimators, method, known.fits()
    )
    fits = calibrate_answers(both, task, settings, vocabulary=vocabulary)
    baselines = [e.id for e in ESTIMATORS if e.role == "baseline" and e.id in known.estimators]
    chosen = picks(known.frame, known.splits, known.estimators, fits, baselines)
    router = default_estimator(fits)
    compared = [name for name in known.estimators if name in (TRACE_PLUS, router)]
    routers = [*dict.fromkeys([*baselines, PICKED, *compared])]
    bootstrap = [settings.seed, settings.bootstrap.resamples, settings.bootstrap.level]
    own_routes = routed(
        answers, with_picked(predictions, chosen), known.splits, "cascade", routers, bootstrap
    )
    found = cascade({"cascade": own_routes}, baselines, settings.bootstrap.level)
    reasons = undecided(both, known.estimators[router], FittedOn(**fits["fitted_on"]))
    decided = both.filter(pl.Series(reasons, dtype=pl.String).is_null())["example_id"]
    seen, tested = paired_parts(_first_split(known, answers, router, fits[router], decided))
    control = settings.risk_control
    level = error_level(control.confidence)
    fits[router]["cascade"] = {
        "large": ", ".join(told["model"].drop_nulls().unique().sort()) or None,
        "confidence": control.confidence,
        "thresholds": [
            asdict(cascade_guarantee(seen, tested, *promise, level, control.largest_group))
            for promise in control.cascades.listed()
        ],
    }
    return Cascaded(found.filter(pl.col("task").is_null()), fits, router)


def _paired(
    known: Labelled, small: pl.DataFrame, large: pl.DataFrame, prices: Sequence[Price] | None
) -> pl.DataFrame:
    """`example_id`, `group_id` and the columns of `routed`; costs are NaN without prices."""
    frame = known.frame.select("example_id", "group_id")
    for place, (name, own) in enumerate((("small", small), ("large", large))):
        tokens = [
            own[column].list.len().cast(pl.Float64) for column in ("prompt_token_ids", "surprisal")
        ]
        paid = answer_costs(
            *(one.to_numpy() for one in tokens), prices[place] if prices else None, None
        )
        costs = np.full(len(own), np.nan) if paid is None else paid
        columns = own.select("example_id", pl.col("correct").alias(name)).with_columns(
            pl.Series(f"{name}_cost", costs)
        )
        frame = frame.join(columns, on="example_id", how="inner", validate="1:1")
    return frame


def _first_split(
    known: Labelled,
    answers: pl.DataFrame,
    router: str,
    fits: Mapping[str, Any],
    decided: pl.Series,
) -> pl.DataFrame:
    """`answers` in the first split, with the probability of its fit; null where there is none, or
    where a threshold does not hold for it: these are escalated.
    """
    columns = known.estimators[router]
    (probability,) = probabilities(known.frame.select(columns), [fits["splits"]["0"]])
    rated = known.frame.select("example_id", probability=pl.Series(probability).fill_nan(None))
    holds = pl.when(pl.col("example_id").is_in(decided.implode())).then("probability")
    return answers.join(
        rated.select("example_id", probability=holds), on="example_id", validate="1:1"
    ).join(known.first_split, on="example_id", validate="1:1")
