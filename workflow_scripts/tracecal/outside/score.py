"""A calibrated probability for every answer of a file, by the workflow's own code."""

import polars as pl

from tracecal.errors import InputError
from tracecal.outside.agree import open_questions, require_same_kind
from tracecal.outside.fitted import Fitted, interval
from tracecal.outside.inputs import input_bounds, inputs
from tracecal.progress import LOGGER

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}


def score_answers(
    answers: pl.DataFrame, fitted: Fitted, error_rate: float | None = None
) -> pl.DataFrame:
    """The columns of `SCORED`, a row per answer of `answers` (columns of `RECORDS`).

    `probability` lies in [`lower`, `upper`], as would that of exact entropies. Where it cannot be
    computed it is null, with a `reason`. Raises `InputError` where the answers are not of the
    calibrator's model and kind of trace, or where it needs more than traces.
    """
    require_same_kind(answers, fitted.fitted_on)
    for question in open_questions(answers, fitted.fitted_on):
        LOGGER.warning("%s", question)
    answers = answers.sort("example_id")
    columns = list(fitted.inputs)
    known = inputs(answers)
    if missing := [name for name in columns if name not in known.columns]:
        raise InputError(
            f"{fitted.estimator} needs {missing[0]}, which traces do not provide: only the "
            "workflow can compute it. Choose trace_plus or another estimator of traces."
        )
    defined = known.select(pl.all_horizontal(pl.col(columns).is_not_null())).to_series()
    x, low, high = (
        frame.filter(defined).select(columns).to_numpy(order="c")  # NaN where null
        for frame in (known, *input_bounds(answers))
    )
    lower, upper = interval(fitted.final, low, high)
    scored = pl.DataFrame(
        {
            "example_id": answers["example_id"].filter(defined),
            "probability": fitted.final.predict(x),
            "lower": lower,
            "upper": upper,
            "keep": fitted.keeps(x, error_rate) if error_rate is not None else None,
        },
        schema_overrides=SCORED,
    )
    why = answers["lacks"].fill_null("undefined for this answer")
    reasons = answers.select("example_id", reason=pl.when(~defined).then(why))
    return reasons.join(
        scored.fill_nan(None), on="example_id", how="left", validate="1:1", maintain_order="left"
    ).select(*SCORED)
