"""By how much TRACE+ is better than a baseline, as points: averages and their differences.

Three comparisons, in the column `against`:

- 'picked': the baseline that fits the calibration labels best, chosen anew in each split
  (`tracecal.calibrate.picked`). It is the choice that a user could make.
- 'named': one baseline, named in the configuration before any result is seen.
- 'oracle': the baseline with the best average over the splits, by each metric, which nobody can
  choose beforehand.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.analyse.averages import mean, mean_series, spread
from tracecal.analyse.studies import models_of
from tracecal.calibrate.picked import PICKED

TRACE_PLUS = "trace_plus"
# Signs that make larger values better.
SIGNS = {
    "brier": -1.0,
    "ece": -1.0,
    "nll": -1.0,
    "aurc": -1.0,
    "auroc": 1.0,
    "auroc_calibrated": 1.0,
    "prr": 1.0,
}
AGAINST = ("picked", "named", "oracle")
SCOPE = ("study", "model", "task", "metric")
KEYS = (*SCOPE, "against")
GAINS = dict.fromkeys(KEYS, pl.String) | {
    "baseline": pl.String,
    "reference": pl.Float64,
    "reference_sd": pl.Float64,
    "value": pl.Float64,
    "value_sd": pl.Float64,
    "difference": pl.Float64,
    "difference_sd": pl.Float64,
    "splits": pl.Int64,
    "undefined": pl.Int64,
}


def gains(
    averages: pl.DataFrame, baselines: Sequence[str], named: str, by: Sequence[str] = ()
) -> pl.DataFrame:
    """A row per metric and scope of `averages` and each of AGAINST: GAINS after the columns `by`.

    `reference` is the average of the `baseline`, `value` that of TRACE+, `difference` by how much
    TRACE+ is better, null where either average is; each has its s.d. over splits. `undefined` is
    the largest number of `splits` in which one of the estimators has no value. The cross study's
    row without a model is the mean over the models whose difference is defined.
    """
    keys = [*by, *SCOPE]
    compared = averages.filter(
        pl.col("estimator").is_in([*baselines, PICKED, TRACE_PLUS]),
        pl.col("metric").is_in(list(SIGNS)),
    ).sort(*keys, "estimator")
    rows, cross = [], {}
    for key, members in compared.group_by(keys, maintain_order=True):
        scope = dict(zip(keys, key, strict=True))
        if scope["study"] and not scope["model"]:
            continue
        by_estimator = {row["estimator"]: row for row in members.iter_rows(named=True)}
        sign = SIGNS[scope["metric"]]
        for against, baseline in _references(by_estimator, baselines, named, sign).items():
            rows.append(scope | {"against": against} | _gain(by_estimator, baseline, sign))
            if scope["study"] == "cross":
                common = tuple(rows[-1][key] for key in (*by, "metric", "against"))
                cross.setdefault(common, []).append(rows[-1])
    rows += [models[0] | {"model": None} | _mean_gain(models) for models in cross.values()]
    # Takes only the schema's entries of a row: the series of single splits served the s.d.
    return pl.DataFrame(rows, schema=dict.fromkeys(by, pl.String) | GAINS).sort(*keys, "against")


def _references(
    by_estimator: Mapping[str, Mapping], baselines: Sequence[str], named: str, sign: float
) -> dict[str, str | None]:
    """The estimator that each of AGAINST compares with; the oracle's is the first of equal ones."""
    rivals = {name: by_estimator[name] for name in baselines if name in by_estimator}
    signed = {name: sign * row["mean"] for name, row in rivals.items() if row["mean"] is not None}
    best = max(signed, key=signed.__getitem__) if signed else None
    return {"picked": PICKED, "named": named, "oracle": best}


def _gain(by_estimator: Mapping[str, Mapping], baseline: str | None, sign: float) -> dict:
    reference, value = by_estimator.get(baseline), by_estimator.get(TRACE_PLUS)
    sides = [(row["mean"], row["values"]) if row else (None, []) for row in (reference, value)]
    return _compared(*sides, sign) | {
        "baseline": baseline if baseline != PICKED else None,
        "splits": max(row["splits"] for row in by_estimator.values()),
        "undefined": max(row["undefined"] for row in by_estimator.values()),
    }


def with_picks(
    gain_rows: pl.DataFrame,
    picks: Mapping[tuple[str, str], Sequence[str]],
    studies: Mapping[str, Mapping],
) -> pl.DataFrame:
    """`gains` whose rows against the picked baseline name the one that is picked most often.

    `picks` has the baselines picked in the splits of each (model, task) pair.
    """
    found: dict[tuple, list[str]] = {(None, *pair): list(names) for pair, names in picks.items()}
    for study, members in studies.items():
        for (model, task), names in picks.items():
            if model in models_of(members) and task in members["tasks"]:
                found.setdefault((study, model, None), []).extend(names)
                if "models" in members:
                    found.setdefault((study, None, None), []).extend(names)
    rows = [
        (*scope, "picked", min(names, key=lambda name, of=Counter(names): (-of[name], name)))
        for scope, names in found.items()
        if names
    ]
    schema = dict.fromkeys(("study", "model", "task", "against", "most"), pl.String)
    most = pl.DataFrame(rows, schema=schema, orient="row")
    joined = gain_rows.join(
        most,
        on=["study", "model", "task", "against"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return joined.with_columns(baseline=pl.coalesce("baseline", "most")).drop("most")


Side = tuple[float | None, Sequence[float | None]]


def _compared(reference: Side, value: Side, sign: float) -> dict:
    """Both sides' means and s.d., and those of the differences; a side is a mean and its series."""
    (reference_mean, reference_series), (value_mean, value_series) = reference, value
    pairs = (
        zip(reference_series, value_series, strict=True)
        if reference_series and value_series
        else ()
    )
    series = [_difference(*pair, sign) for pair in pairs]
    return {
        "reference": reference_mean,
        "reference_sd": spread(reference_series),
        "value": value_mean,
        "value_sd": spread(value_series),
        "difference": _difference(reference_mean, value_mean, sign),
        "difference_sd": spread(series),
        "series": (reference_series, value_series),
        "sign": sign,
    }


def _difference(reference: float | None, value: float | None, sign: float) -> float | None:
    # Each side takes the sign, so that equal sides differ by 0 and not by -0.
    return None if None in (reference, value) else sign * value - sign * reference


def _mean_gain(models: Sequence[Mapping]) -> dict:
    """The mean of the models whose difference is defined."""
    defined = [model for model in models if model["difference"] is not None]

    def side(name: str, place: int) -> Side:
        series = mean_series([model["series"][place] for model in defined])
        return mean([model[name] for model in defined]), series

    return _compared(side("reference", 0), side("value", 1), models[0]["sign"]) | {
        "baseline": models[0]["baseline"] if models[0]["against"] == "named" else None,
        "splits": max(model["splits"] for model in models),
        "undefined": max(model["undefined"] for model in models),
    }
