"""How much better TRACE+ is than a baseline, with an interval from the paired bootstrap."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.averages import AVERAGES, mean, mean_series, spread
from trace_workflow.analyses.study_files import models_of, of_study
from tracecal.calibration.predictions import PICKS
from tracecal.calibration.resampling import RESAMPLES, interval
from tracecal.estimators.entry import PICKED, TRACE_PLUS
from tracecal.io.files import read_parquet

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
    """`gains` whose rows against the selected baseline name the one selected most often.

    `picks` has the baselines selected in the splits of each (model, task) pair.
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


BOUNDED = GAINS | {
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
    "supported": pl.Boolean,
}
COUNTS = {
    "tasks": pl.col("difference").is_not_null().sum(),
    "wins": (pl.col("difference") > 0).sum(),
    "supported_wins": pl.col("supported").sum(),
}
IMPROVEMENTS = BOUNDED | dict.fromkeys(COUNTS, pl.Int64)

# By estimator: values [1 + resamples], the sample's first; larger = better, NaN = undefined.
Values = Mapping[str, np.ndarray]
Pairs = Mapping[tuple[str, str], Values]
UNDEFINED = np.array([np.nan])


def analysis(
    averages: str,
    resamples: Sequence[str],
    picked: Sequence[str],
    pairs: Sequence[Sequence[str]],
    baselines: Sequence[str],
    named: str,
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """The improvements of a run, from its averages, and each pair's resamples and picks."""
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in resamples)
    picks = {
        tuple(pair): read_parquet(path, list(PICKS))["baseline"].to_list()
        for pair, path in zip(pairs, picked, strict=True)
    }
    gained = gains(read_parquet(averages, list(AVERAGES)), baselines, named)
    return improvements(with_picks(gained, picks, studies), resampled, named, studies, level)


def improvements(
    gain_rows: pl.DataFrame,
    resampled: pl.DataFrame,
    named: str,
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """`gains` with intervals, and with counts of the wins on single tasks; columns IMPROVEMENTS.

    `resampled` has the rows of `resample_metrics` of all pairs. `low` and `high` bound the
    percentile interval that holds `level` of the `resamples` in which the difference is defined,
    null where it never is, and against the oracle. `supported`: whether TRACE+ is better and the
    interval lies above zero. Of the pairs behind a row, `tasks` have a difference, `wins` are those
    where TRACE+ is strictly better, and `supported_wins` those whose win is supported.
    """
    bounds = {}
    for metric in resampled["metric"].unique().sort():
        by_pair = values_of(resampled.filter(metric=metric), SIGNS[metric])
        for against, baseline in (("picked", PICKED), ("named", named)):
            for scope, difference in differences(by_pair, studies, baseline).items():
                bounds[*scope, metric, against] = interval(difference[1:], level)
    return bounded(gain_rows, bounds, studies, level)


def bounded(
    gain_rows: pl.DataFrame,
    bounds: Mapping[tuple, tuple[float | None, float | None, int]],
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """As `improvements`; `bounds` has by KEYS the low and high end and number of resamples."""
    rows = []
    for row in gain_rows.iter_rows(named=True):
        low, high, resamples = bounds.get(tuple(row[key] for key in KEYS), (None, None, 0))
        won = row["difference"] is not None and row["difference"] > 0
        supported = won and low is not None and low > 0
        ends = {"low": low, "high": high, "level": level, "resamples": resamples}
        rows.append(row | ends | {"supported": supported})
    return _counted(pl.DataFrame(rows, schema=BOUNDED), studies)


def _counted(frame: pl.DataFrame, studies: Mapping[str, Mapping]) -> pl.DataFrame:
    """The frame with COUNTS."""
    null = pl.lit(None, pl.String)
    pairs = frame.filter(pl.col("study").is_null())
    parts = [pairs]
    for study, study_settings in studies.items():
        study_pairs = pairs.filter(of_study(study_settings)).with_columns(
            study=pl.lit(study), task=null
        )
        parts += [study_pairs, study_pairs.with_columns(model=null)]
    counted = pl.concat(parts).group_by(KEYS).agg(**COUNTS)
    joined = frame.join(counted, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    return joined.select(*IMPROVEMENTS).cast(IMPROVEMENTS)


def values_of(resampled: pl.DataFrame, sign: float) -> Pairs:
    """The values of each (model, task) pair, sorted."""
    by_pair: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    columns = ("model", "task", "estimator", "observed", "resampled")
    ordered = resampled.sort("model", "task").select(columns)
    for model, task, estimator, observed, drawn in ordered.iter_rows():
        array = sign * np.array([observed, *drawn], dtype=float)
        by_pair.setdefault((model, task), {})[estimator] = array
    return by_pair


def differences(
    by_pair: Pairs, studies: Mapping[str, Mapping], baseline: str
) -> dict[tuple, np.ndarray]:
    """By (study, model, task): TRACE+ minus the baseline, [1 + resamples], NaN where undefined."""
    found = {(None, *pair): _difference_of(values, baseline) for pair, values in by_pair.items()}
    for study, study_settings in studies.items():
        tasks = study_settings["tasks"]
        of_models = {
            (study, model, None): _difference_of(_over_tasks(by_pair, model, tasks), baseline)
            for model in models_of(study_settings)
        }
        found |= of_models
        if "models" in study_settings:
            defined = [values for values in of_models.values() if not np.isnan(values[0])]
            found[study, None, None] = np.mean(defined, axis=0) if defined else UNDEFINED
    return found


def _over_tasks(by_pair: Pairs, model: str, tasks: Sequence[str]) -> Values:
    """Means over tasks of the resamples with the same number.

    As in `averages`, a task counts where any estimator has a value on it, and an estimator that
    lacks a value on one of these tasks has no average.
    """
    by_task = [by_pair[model, task] for task in tasks if (model, task) in by_pair]
    counted = [values for values in by_task if not all(np.isnan(v[0]) for v in values.values())]
    estimators = set.intersection(*map(set, counted)) if counted else set()
    return {name: np.mean([values[name] for values in counted], axis=0) for name in estimators}


def _difference_of(values: Values, baseline: str) -> np.ndarray:
    if TRACE_PLUS not in values or baseline not in values:
        return UNDEFINED
    return values[TRACE_PLUS] - values[baseline]
