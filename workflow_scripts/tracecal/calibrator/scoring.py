"""A calibrated probability for each answer of a frame."""

from collections.abc import Sequence

import polars as pl

from tracecal.answers.record import ALSO
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.calibrator.trace_kinds import compare_kinds
from tracecal.errors import InputError
from tracecal.estimators.trace_inputs import TRACE_INPUTS, compute_bounded_inputs
from tracecal.io.log import LOGGER

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}
WITHOUT = "it has no {}, which the calibrator takes beside the trace (--also)"
UNDEFINED = "undefined for this answer"
PROBABILITIES = ("probability", "lower", "upper")
DIGITS = 4  # of probabilities in files


def score_answers(
    answers: pl.DataFrame,
    predictor: Predictor,
    target: Target | None = None,
    task: str | None = None,
) -> pl.DataFrame:
    """Score each of the answers (columns of `RECORDS`); columns of `SCORED`, in the same order.

    For a calibrator of parts, `answers` are parts, with the column `part`. The probability, and the
    one that exact entropies would give, lie in [`lower`, `upper`]. `reason` says why `probability`,
    or `keep` at a target, is None. Raises `InputError` if the answers have another model, task or
    kind of trace than the calibrator, or if its inputs need more than traces. An answer that was
    not given is not kept at any target.
    """
    why_not = None if target is None else predictor.why_not(target)
    deciding = None if target is None or why_not else predictor.ranking_inputs
    reasons = [
        why_not or other for other in compare_kinds(answers, predictor.fitted_on, task, deciding)
    ]
    answers = answers.with_columns(undecided=pl.Series(reasons, dtype=pl.String))
    if predictor.substitute is None:
        return _score(answers, predictor, target, deciding)
    has_entropies = answers["entropy"].is_not_null()
    if answers.filter(~has_entropies)["surprisal"].count():
        names = LABELS[predictor.estimator], LABELS[predictor.substitute.estimator]
        LOGGER.warning("without entropies %s is not defined; using %s", *names)
    scored = pl.concat(
        _score(rows, predictor.suited(is_usual), target, deciding)
        for is_usual in (True, False)
        if (rows := answers.filter(has_entropies == is_usual)).height or is_usual
    )
    ids = answers.select("example_id")
    return ids.join(scored, on="example_id", how="left", maintain_order="left")


def _score(
    answers: pl.DataFrame,
    predictor: Predictor,
    target: Target | None,
    deciding: Sequence[str] | None,
) -> pl.DataFrame:
    """Score answers, `undecided` by a threshold where they say why, by one predictor."""
    _require_trace_inputs(predictor)
    columns = list(predictor.columns)
    bounded = compute_bounded_inputs(answers, columns, predictor.custom)
    values, inputs = bounded[0], list(predictor.inputs)
    complete = values.select(pl.all_horizontal(pl.col(inputs).is_not_null())).to_series()
    parts = answers.filter(complete)["part"] if "part" in answers.columns else ()
    x, low, high = (
        # Missing values become NaN.
        predictor.with_part(frame.filter(complete).select(columns).to_numpy(order="c"), parts)
        for frame in bounded
    )
    scored = pl.DataFrame(
        {"example_id": answers["example_id"].filter(complete)}
        | predictor.predict(x, low, high, target),
        schema_overrides=SCORED,
    )
    reason = pl.coalesce("no_answer", pl.when(~complete).then(_lacking(answers, values, predictor)))
    if target is not None:
        missing = answers["undecided"]
        if deciding is not None:
            missing = pl.coalesce(_lacking_any(answers, values, deciding), missing)
        reason = pl.coalesce(reason, missing)
    joined = answers.select("example_id", "no_answer", reason=reason).join(
        scored.fill_nan(None), on="example_id", how="left", validate="1:1", maintain_order="left"
    )
    is_asked = pl.lit(target is not None)
    keep = pl.when(pl.col("reason").is_null()).then("keep")
    keep = pl.when(pl.col("no_answer").is_not_null() & is_asked).then(pl.lit(False)).otherwise(keep)
    return joined.with_columns(keep=keep).select(*SCORED)


def _require_trace_inputs(predictor: Predictor) -> None:
    """Raise `InputError` where the predictor takes inputs that do not follow from traces."""
    own_inputs = {f"scores.{name}" for name in predictor.custom}
    own_inputs |= {f"{ALSO}{name}" for name in predictor.also}
    if missing := [
        name for name in predictor.columns if name not in TRACE_INPUTS and name not in own_inputs
    ]:
        raise InputError(
            f"{predictor.estimator} needs {missing[0]}, which traces do not provide: only the "
            "workflow can compute it. Choose trace_plus or another estimator of traces."
        )


def _lacking(answers: pl.DataFrame, values: pl.DataFrame, predictor: Predictor) -> pl.Series:
    """Say what each answer without a probability lacks, [answers]."""
    trace_inputs = [name for name in predictor.inputs if not name.startswith(ALSO)]
    reason = answers["lacks"].fill_null(UNDEFINED).alias("reason")
    missing_column = pl.lit(None, pl.String)
    for name in predictor.also:
        missing = pl.when(pl.col(f"{ALSO}{name}").is_null()).then(pl.lit(WITHOUT.format(name)))
        missing_column = pl.coalesce(missing_column, missing)
    traced = pl.all_horizontal(pl.col(trace_inputs).is_not_null())
    reasons = pl.coalesce(pl.when(traced).then(missing_column), "reason")
    return values.with_columns(reason).select(reasons).to_series()


def _lacking_any(answers: pl.DataFrame, values: pl.DataFrame, inputs: Sequence[str]) -> pl.Series:
    """Say what each answer without one of the inputs lacks; None where it has all, [answers]."""
    is_lacking = values.select(~pl.all_horizontal(pl.col(inputs).is_not_null())).to_series()
    return answers.select(
        pl.when(is_lacking).then(pl.col("lacks").fill_null(UNDEFINED))
    ).to_series()


def with_digits(scored: pl.DataFrame) -> pl.DataFrame:
    """Round the probabilities of scored answers or `parts` for a file."""
    if "parts" not in scored.columns:
        return scored.with_columns(pl.col(pl.Float64).round(DIGITS))
    rounded = (pl.element().struct.field(name).round(DIGITS) for name in PROBABILITIES)
    return scored.with_columns(pl.col("parts").list.eval(pl.element().struct.with_fields(*rounded)))


def warn_of_missing(scored: pl.DataFrame, decided: bool) -> None:
    """Warn how many answers have no probability and, if `decided`, no decision."""
    kinds = {"probability": "no probability"} | ({"keep": "no decision"} if decided else {})
    for column, kind in kinds.items():
        missing = scored.filter(pl.col(column).is_null() & pl.col("reason").is_not_null())
        if missing.height:
            reasons = "; ".join(missing["reason"].unique().sort())
            LOGGER.warning(
                "%d of %d answers have %s: %s", missing.height, scored.height, kind, reasons
            )
