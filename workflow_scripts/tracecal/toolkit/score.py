"""A calibrated probability for every answer of a file, by the workflow's own code."""

import polars as pl

from tracecal.errors import InputError
from tracecal.estimate.of_traces import KNOWN, NEED_ENTROPY, input_bounds, inputs
from tracecal.jobs.progress import LOGGER
from tracecal.logs.record import ENTROPY_KIND
from tracecal.toolkit.agree import (
    KNOWN_ANSWER,
    fingerprints,
    open_questions,
    other_entropies,
    require_same_kind,
    run_on,
)
from tracecal.toolkit.fitted import Fitted, interval

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}


def score_answers(
    answers: pl.DataFrame,
    fitted: Fitted,
    error_rate: float | None = None,
    task: str | None = None,
) -> pl.DataFrame:
    """The columns of `SCORED`, a row per answer of `answers` (columns of `RECORDS`), in its order.

    Where the calibrator is one of parts of answers, `answers` are such, with the column `part`.
    `probability` lies in [`lower`, `upper`], as would that of exact entropies. `reason` says why
    `probability`, or `keep` at a target `error_rate`, is null. Raises `InputError` where the
    answers are not of the calibrator's model, task and kind of trace, or where it needs more than
    traces.
    """
    fitted.require_parts("part" in answers.columns)
    require_same_kind(answers, fitted.fitted_on, task)
    for warning in (*open_questions(answers, fitted.fitted_on), run_on(answers)):
        if warning:
            LOGGER.warning("%s", warning)
    columns = list(fitted.inputs)
    if missing := [name for name in columns if name not in KNOWN]:
        raise InputError(
            f"{fitted.estimator} needs {missing[0]}, which traces do not provide: only the "
            "workflow can compute it. Choose trace_plus or another estimator of traces."
        )
    known = inputs(answers, columns)
    defined = known.select(pl.all_horizontal(pl.col(columns).is_not_null())).to_series()
    x, low, high = (
        fitted.with_part(
            frame.filter(defined).select(columns).to_numpy(order="c"),  # NaN where null
            answers.filter(defined)["part"] if fitted.by_part else (),
        )
        for frame in (known, *input_bounds(answers, columns))
    )
    lower, upper = interval(fitted.final, low, high)
    kept = fitted.keeps(x, error_rate) if error_rate is not None else None
    scored = pl.DataFrame(
        {
            "example_id": answers["example_id"].filter(defined),
            "probability": fitted.final.predict(x),
            "lower": lower,
            "upper": upper,
            "keep": kept,
        },
        schema_overrides=SCORED,
    )
    why = pl.when(~defined).then(answers["lacks"].fill_null("undefined for this answer"))
    if error_rate is not None:
        why = pl.coalesce(why, pl.Series(_undecided(answers, fitted, error_rate), dtype=pl.String))
    joined = answers.select("example_id", reason=why).join(
        scored.fill_nan(None), on="example_id", how="left", validate="1:1", maintain_order="left"
    )
    decided = pl.when(pl.col("reason").is_null()).then("keep")
    return joined.with_columns(keep=decided).select(*SCORED)


def _undecided(answers: pl.DataFrame, fitted: Fitted, error_rate: float) -> list[str | None]:
    """Why the threshold does not decide about each answer; null where it does."""
    if (why := fitted.why_not(error_rate)) is not None:
        return [why] * answers.height
    reasons: list[str | None] = [None] * answers.height
    if not NEED_ENTROPY.isdisjoint(fitted.inputs):
        kinds = answers.select(ENTROPY_KIND, "top_k").rows()
        reasons = [other_entropies(*kind, fitted.fitted_on) for kind in kinds]
    among = fingerprints(answers).is_in(list(fitted.fitted_on.answers)).to_list()
    known = {True: KNOWN_ANSWER}
    return [reason or known.get(was) for reason, was in zip(reasons, among, strict=True)]
