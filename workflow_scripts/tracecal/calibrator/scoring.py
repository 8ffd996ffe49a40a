"""What a calibrator says of answers: a probability for each, and whether to keep it.

`Predictor.decide` says it of all answers alike: `score_answers` asks it about those of a frame,
`score_record` about one, `score_answer` about one from two lists of floats, and `score_response`
about one from a server's response.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.answers import Answers, KeepRows, Source, answers_in
from tracecal.answers.reading import Reading
from tracecal.answers.record import ALSO, Record
from tracecal.answers.row import read_row
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.predictor import PROBABILITIES, Kinds, Predictor, Target
from tracecal.calibrator.trace_kinds import (
    NEXT_QUESTION,
    compare_answers,
    compare_record,
    describe_mix,
    reading_for,
    require_parts,
    undecided_answers,
    undecided_record,
)
from tracecal.errors import InputError, WrongRow, some_of
from tracecal.estimators.features import TRACE_INPUTS, compute_bounded_inputs
from tracecal.io.log import LOGGER

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}
DIGITS = 4  # of probabilities in files
WITHOUT_DECISION = "no answer has a decision, kept or not: %s"
NO_ENTROPIES = "its entropies are not known"
NO_VALUES: Mapping[str, float | None] = {}


def score_answers(
    answers: pl.DataFrame,
    predictor: Predictor,
    target: Target | None = None,
    task: str | None = None,
) -> pl.DataFrame:
    """Score each of the answers (columns of `RECORDS`); columns of `SCORED`, in the same order.

    For a calibrator of parts, `answers` are parts, with the columns `part` and `parent_id`. The
    probability, and the one that exact entropies would give, lie in [`lower`, `upper`]. `reason`
    says why `probability`, or `keep` at a target, is None. Raises `InputError` if the answers have
    another model, task or kind of trace than the calibrator, or if its inputs need more than
    traces. An answer that was not given is not kept at any target.
    """
    require_scored_kind(answers, predictor, target, task)
    return score_rows(answers, predictor, target)


def require_scored_kind(
    answers: pl.DataFrame, predictor: Predictor, target: Target | None, task: str | None
) -> None:
    """Raise the errors of `score_answers`, and warn of what is unknown or replaced.

    It takes no values of traces, and no texts but those that run on into another question.
    """
    fitted_on = predictor.fitted_on
    if target is not None:
        predictor.require_tested(target)
    warnings: list[str | None] = [*compare_answers(answers, fitted_on, task)]
    if target is not None:
        warnings.append(describe_mix(answers, fitted_on.row_tasks))
    for warning in filter(None, warnings):
        LOGGER.warning("%s", warning)
    is_replaced = answers["surprisal"].is_not_null() & answers["entropy"].is_null()
    if predictor.substitute is not None and is_replaced.any():
        names = LABELS[predictor.estimator], LABELS[predictor.substitute.estimator]
        LOGGER.warning("without entropies %s is not defined; using %s", *names)


def score_source(
    answers: Source,
    reading: Reading,
    predictor: Predictor,
    target: Target | None,
    task: str | None,
    keep: Callable[[Answers, pl.DataFrame], pl.DataFrame],
    keep_rows: KeepRows = False,
) -> Answers:
    """Score answers while they are read: a long file needs a few bytes of memory for each.

    The frame has the columns of `kinds_of`, and those that `keep` returns of some answers and their
    scores (columns of `SCORED`). Raises the errors of `score_answers`.
    """
    if target is not None:
        predictor.require_tested(target)
    require_parts(predictor.fitted_on, False)

    def score_some(some: Answers) -> pl.DataFrame:
        return kinds_of(some.frame).hstack(keep(some, score_rows(some.frame, predictor, target)))

    # The answers on which a score of the user's own fails are counted.
    is_whole = bool(predictor.custom)
    source = answers_in(answers, reading, keep_rows, None if is_whole else score_some)
    source = replace(source, frame=score_some(source)) if is_whole else source
    require_scored_kind(source.frame, predictor, target, task or source.metadata.get("task"))
    return source


def kinds_of(answers: pl.DataFrame) -> pl.DataFrame:
    """What `require_scored_kind` takes of answers (columns of `RECORDS`), in a few bytes of each.

    Texts are there where they run on into another question alone, and of lists whether they are.
    """
    lists = ("surprisal", "entropy", "entropy_upper")
    return answers.select(
        "example_id",
        categories("model", "stop_token", "processed", "reasoning", "decoding", "row_task"),
        categories("no_answer", "lacks"),
        "group_id",
        "top_k",
        "vocabulary",
        "correct",
        pl.col("answer").str.extract(f"({NEXT_QUESTION})"),
        *(pl.when(pl.col(name).is_not_null()).then(True).alias(name) for name in lists),
    )


def categories(*names: str) -> pl.Expr:
    """Columns of few different texts, of four bytes each."""
    return pl.col(names).cast(pl.Categorical)


def score_rows(
    answers: pl.DataFrame, predictor: Predictor, target: Target | None = None
) -> pl.DataFrame:
    """Score each of the answers by itself, as `score_answers` does."""
    fitted_on = predictor.fitted_on
    undecided: list[str | None] = [None] * answers.height
    if target is not None:
        undecided = undecided_answers(answers, predictor.ranking_inputs, fitted_on)
    n_parts = pl.lit(1) if fitted_on.parts is None else pl.len().over("parent_id")
    answers = answers.with_columns(undecided=pl.Series(undecided, dtype=pl.String), n_parts=n_parts)
    if predictor.substitute is None:
        return _score(answers, predictor, target)
    has_entropies = answers["entropy"].is_not_null()
    scored = pl.concat(
        _score(rows, predictor.suited(is_usual), target)
        for is_usual in (True, False)
        if (rows := answers.filter(has_entropies == is_usual)).height or is_usual
    )
    ids = answers.select("example_id")
    return ids.join(scored, on="example_id", how="left", maintain_order="left")


def _score(
    answers: pl.DataFrame, predictor: Predictor, target: Target | None = None
) -> pl.DataFrame:
    """Score answers with the columns of `Kinds` by one predictor."""
    _require_trace_inputs(predictor)
    columns = list(predictor.columns)
    parts = answers["part"] if "part" in answers.columns else [""] * answers.height
    x = np.stack(
        [
            # Missing values become NaN.
            predictor.with_part(frame.select(columns).to_numpy(order="c"), parts)
            for frame in compute_bounded_inputs(answers, columns, predictor.extended)
        ]
    )
    kinds = Kinds(*answers.select(*Kinds._fields).get_columns())
    decided = pl.DataFrame(predictor.decide(x, kinds, target), schema_overrides=SCORED)
    return answers.select("example_id").hstack(decided.fill_nan(None)).select(*SCORED)


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


def with_digits(scored: pl.DataFrame) -> pl.DataFrame:
    """Round the probabilities of scored answers or `parts` for a file."""
    if "parts" not in scored.columns:
        return scored.with_columns(pl.col(pl.Float64).round(DIGITS))
    rounded = (pl.element().struct.field(name).round(DIGITS) for name in PROBABILITIES)
    return scored.with_columns(pl.col("parts").list.eval(pl.element().struct.with_fields(*rounded)))


def warn_of_missing(scored: pl.DataFrame, decided: bool) -> None:
    """Warn how many answers have no probability and, if `decided`, how many others no decision."""
    if decided and (why := explain_no_decision(scored)) is not None:
        LOGGER.warning(WITHOUT_DECISION, why)
        return
    lacking = pl.col("probability").is_null()
    kinds = {"no probability": lacking} | (
        {"no decision": pl.col("keep").is_null() & ~lacking} if decided else {}
    )
    for kind, condition in kinds.items():
        missing = scored.filter(condition & pl.col("reason").is_not_null())
        if missing.height:
            reasons = "; ".join(missing["reason"].unique().sort())
            LOGGER.warning(
                "%d of %d answers have %s: %s", missing.height, scored.height, kind, reasons
            )


def explain_no_decision(scored: pl.DataFrame) -> str | None:
    """Why no answer, or part of one, has a decision; None where one has."""
    if "keep" not in scored.columns:
        scored = scored.select("parts").explode("parts").drop_nulls().unnest("parts")
    if scored.drop_nulls("probability")["keep"].count():
        return None
    return some_of([*scored["reason"].drop_nulls().unique().sort()])


@dataclass(frozen=True)
class Confidence:
    """The calibrated probability that an answer is correct.

    Attributes
    ----------
    probability : float or None
        Probability that the answer is correct.
    lower, upper : float or None
        Bounds of the probability that exact entropies would give; None if unknown.
    keep : bool or None
        Whether to keep the answer at the target; None without a target or with a `reason`, but
        False where the model gave no answer.
    reason : str or None
        Why `probability` or `keep` is None, or why there is no answer.
    """

    probability: float | None
    lower: float | None = None
    upper: float | None = None
    keep: bool | None = None
    reason: str | None = None


def score_answer(
    predictor: Predictor,
    surprisal: Sequence[float],
    entropy: Sequence[float] | None,
    target: Target | None = None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    top_k: int | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> Confidence:
    """Score an answer by its tokens' surprisals and entropies (nats), or the `part` of this name.

    `also` holds the values of the user's own columns. The bounds `lower` and `upper` of entropies
    from `top_k` tokens per step give bounds of the probability. `entropy` may be None if the
    estimator does not need it. Raises `InputError` if a list is empty, lengths differ, a number is
    negative or not finite, or the calibrator needs more than a trace.

    >>> predictor = getfixture("calibrator")  # Calibrator.load("C.json").predictor("trace_plus")
    >>> score_answer(predictor, surprisal=[0.05, 0.4], entropy=[0.2, 0.9]).probability > 0.5
    True
    """
    require_parts(predictor.fitted_on, part is not None)
    if surprisal is None:
        raise InputError("an answer's surprisals are None; give one number per token, in nats")
    trace = {"surprisal": surprisal, "entropy": entropy}
    bounds = {"entropy_lower": lower, "entropy_upper": upper, "top_k": top_k}
    columns = [{"name": name, "value": value} for name, value in also.items()]
    record = Record("answer", **trace, **bounds, lacks=NO_ENTROPIES, also=columns)
    return score_record(predictor, record, target, part)[0]


def score_record(
    predictor: Predictor,
    record: Record,
    target: Target | None = None,
    part: str | None = None,
    n_parts: int = 1,
) -> tuple[Confidence, np.ndarray | None]:
    """Score a record of the calibrator's kind (`require_kind`), or the `part` of this name.

    The inputs are the `Predictor.answer_inputs` of the predictor that suits the record; None if it
    has no probability. Raises the errors of `score_answer`.
    """
    predictor = predictor.suited(record.entropy is not None)
    x = predictor.answer_inputs(record, part)
    undecided = None
    if target is not None:
        settings = predictor.ranking_inputs, predictor.fitted_on, predictor.labelled
        undecided = undecided_record(record, *settings)
    kinds = Kinds([record.no_answer], [record.lacks], [undecided], [n_parts])
    *proba, keep, reason = predictor.decide(x[:, None], kinds, target).values()
    confidence = Confidence(
        *(None if np.isnan(value[0]) else value.item() for value in proba),
        keep=keep and keep[0],
        reason=reason[0],
    )
    return confidence, None if confidence.probability is None else x


def score_response(
    predictor: Predictor,
    response: Any,
    request: Mapping[str, Any] | None = None,
    target: Target | None = None,
    reading: Reading | None = None,
) -> Confidence:
    """Score a server's response; raises the errors of `Calibrator.score_response`."""
    require_parts(predictor.fitted_on, False)
    record = read_response(predictor, response, request, reading)
    return score_record(predictor, record, target)[0]


def read_response(
    predictor: Predictor, response: Any, request: Mapping[str, Any] | None, reading: Reading | None
) -> Record:
    """Read the answer of a response, which is of the calibrator's kind (`require_kind`)."""
    body = response if isinstance(response, dict) else response.model_dump()
    row = {"id": "answer", "request": dict(request or {}), "response": body}
    settings = predictor.reading
    if reading is not None:
        settings = reading_for(predictor.fitted_on, reading)
    try:
        record = read_row(row, settings)
    except WrongRow as error:
        raise InputError(f"the response cannot be read: {error}.") from error
    require_kind(record, predictor)
    return record


def require_kind(record: Record, predictor: Predictor) -> None:
    """Raise `InputError` where an answer is of another model or kind of trace.

    What is unknown of it or of the calibrator counts as equal, and text that runs on into another
    question as its own, as in a file, with one warning.
    """
    for warning in compare_record(record, predictor.fitted_on):
        predictor.warn_once(warning)
