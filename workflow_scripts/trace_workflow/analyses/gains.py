"""The advantage of TRACE+, and of own scores, over the selected, prespecified and best baseline.

Differences of averages; `improvements` adds intervals.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import mode

import polars as pl

from trace_workflow.analyses.averages import mean, mean_series, spread
from trace_workflow.analyses.study_files import models_of
from tracecal.estimators.estimator import PICKED, TRACE_PLUS

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
FIXED = ("named", TRACE_PLUS)  # the same for every model
SCOPE = ("study", "model", "task", "metric")
KEYS = (*SCOPE, "estimator", "against")
VALUES = [f"{name}{end}" for name in ("reference", "value", "difference") for end in ("", "_sd")]
GAINS = {
    **dict.fromkeys((*KEYS, "baseline"), pl.String),
    **dict.fromkeys(VALUES, pl.Float64),
    **dict.fromkeys(("splits", "undefined"), pl.Int64),
}
Side = tuple[float | None, Sequence[float | None]]  # a mean, and the series of single splits


def gains(
    averages: pl.DataFrame,
    baselines: Sequence[str],
    named_baseline: str,
    own_scores: Sequence[str] = (),
) -> pl.DataFrame:
    """Rows per metric and scope of `averages`; columns GAINS.

    TRACE+ is compared with each of AGAINST, and so is each of the user's `own_scores` that has an
    average, with TRACE+ besides. `reference` is the average of the `baseline`, `value` that of the
    `estimator`, and `difference` the advantage of the estimator, None where either average is; each
    has its s.d. over splits. `undefined` is the largest number of `splits` in which the estimator
    or a baseline has no value. The cross study's row without a model is the mean over the models
    with a defined difference.
    """
    compared = averages.filter(
        pl.col("estimator").is_in([*baselines, PICKED, TRACE_PLUS, *own_scores]),
        pl.col("metric").is_in(list(SIGNS)),
    ).sort(*SCOPE, "estimator")
    rows, cross = [], {}
    for key, members in compared.group_by(SCOPE, maintain_order=True):
        scope = dict(zip(SCOPE, key, strict=True))
        if scope["study"] and not scope["model"]:
            continue
        by_estimator = {row["estimator"]: row for row in members.iter_rows(named=True)}
        sign = SIGNS[scope["metric"]]
        means = {name: by_estimator[name]["mean"] for name in baselines if name in by_estimator}
        signed = {name: sign * value for name, value in means.items() if value is not None}
        best = max(signed, key=signed.__getitem__) if signed else None  # of several the first
        rivals = dict(zip(AGAINST, (PICKED, named_baseline, best), strict=True))
        measured = [name for name in own_scores if name in by_estimator]
        compared = [(TRACE_PLUS, *rival) for rival in rivals.items()]
        rivals |= {TRACE_PLUS: TRACE_PLUS}
        compared += [(name, *rival) for name in measured for rival in rivals.items()]
        for estimator, against, baseline in compared:
            sides = {name: by_estimator[name] for name in by_estimator if name not in own_scores}
            if estimator in own_scores:
                sides |= {estimator: by_estimator[estimator]}
            gain = _gain(sides, estimator, baseline, sign)
            row = scope | {"estimator": estimator, "against": against} | gain
            rows.append(row)
            if scope["study"] == "cross":
                models = tuple(row[key] for key in ("metric", "estimator", "against"))
                cross.setdefault(models, []).append(row)
    rows += [models[0] | {"model": None} | _mean_gain(models) for models in cross.values()]
    # The schema drops a row's other entries: the series of single splits served the s.d.
    return pl.DataFrame(rows, schema=GAINS).sort(*KEYS)


def name_most_picked(
    gain_rows: pl.DataFrame,
    picks: Mapping[tuple[str, str], Sequence[str]],
    studies: Mapping[str, Mapping],
) -> pl.DataFrame:
    """`gains` whose rows against the selected baseline name the one selected most often.

    `picks` has the baselines selected in the splits of each (model, task) pair.
    """
    by_scope: dict[tuple, list[str]] = {(None, *pair): list(names) for pair, names in picks.items()}
    for study, members in studies.items():
        for (model, task), names in picks.items():
            if model in models_of(members) and task in members["tasks"]:
                by_scope.setdefault((study, model, None), []).extend(names)
                if "models" in members:
                    by_scope.setdefault((study, None, None), []).extend(names)
    keys = ("study", "model", "task", "against")
    # Of equally frequent names the first by the alphabet.
    rows = [(*scope, "picked", mode(sorted(ids))) for scope, ids in by_scope.items() if ids]
    schema = dict.fromkeys((*keys, "most_picked"), pl.String)
    most_picked = pl.DataFrame(rows, schema=schema, orient="row")
    joined = gain_rows.join(
        most_picked, on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    baseline = pl.coalesce("baseline", "most_picked")
    return joined.with_columns(baseline=baseline).drop("most_picked")


def _gain(
    by_estimator: Mapping[str, Mapping], estimator: str, baseline: str | None, sign: float
) -> dict:
    reference, value = (
        (row["mean"], row["values"]) if row else (None, [])
        for row in (by_estimator.get(baseline), by_estimator.get(estimator))
    )
    compared = _compare(reference, value, sign, by_estimator.values())
    return compared | {"baseline": baseline if baseline != PICKED else None}


def _mean_gain(models: Sequence[Mapping]) -> dict:
    """The mean over the models whose difference is defined."""
    defined = [model for model in models if model["difference"] is not None]

    def side(name: str, index: int) -> Side:
        series = mean_series([model["series"][index] for model in defined])
        return mean([model[name] for model in defined]), series

    compared = _compare(side("reference", 0), side("value", 1), models[0]["sign"], models)
    return compared | {"baseline": models[0]["baseline"] if models[0]["against"] in FIXED else None}


def _compare(reference: Side, value: Side, sign: float, rows: Collection[Mapping]) -> dict:
    """Both sides' means and s.d., those of the differences, and the most splits of the `rows`."""
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
        **{name: max(row[name] for row in rows) for name in ("splits", "undefined")},
    }


def _difference(reference: float | None, value: float | None, sign: float) -> float | None:
    # Each side takes the sign, so that equal sides differ by 0 and not by -0.
    return None if None in (reference, value) else sign * value - sign * reference
