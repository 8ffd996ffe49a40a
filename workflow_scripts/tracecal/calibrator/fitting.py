"""Fitting a calibrator on labelled answers, and on the unlabelled ones beside them.

1. `describe_answers` describes the labelled answers, and `with_look` the looks at them as they
   grow: calibrating again on more may give another false guarantee. Each look has its level, the
   chance that a guarantee of it is false; over all looks the chance is at most the sum of their
   levels, whatever ranks at each and however many labels it has.
2. `fit_calibrator` finds guarantees, recommends an estimator and makes the calibrator's file.

A user's own column beside the trace must not be the label itself (`require_no_label`): it would
make any guarantee look easy and say nothing about new answers.
"""

import hashlib
import json
from datetime import UTC, datetime

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import ALSO
from tracecal.answers.trace import vocabulary_used
from tracecal.calibrator.answer_ranking import (
    AMOUNTS,
    choose_ranking,
    default_ranking,
    fit_fixed_score,
    rank_answers,
)
from tracecal.calibrator.guarantee import (
    AnswerColumn,
    find_guarantees,
    population_of,
    with_forecasts,
)
from tracecal.calibrator.predictor import UNDEFINED
from tracecal.calibrator.recommendation import DIGITS, count_smaller_class, recommend
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    CalibrationData,
    CalibratorFile,
    FurtherColumn,
    HeldOut,
    Look,
)
from tracecal.calibrator.trace_kinds import (
    QUESTIONS,
    describe_other_kinds,
    model_spellings,
    usual_entropies,
)
from tracecal.calibrator.training_set import TrainingFits, TrainingSet
from tracecal.errors import InputError
from tracecal.fits.fit_settings import FitSettings
from tracecal.fits.fits import probabilities
from tracecal.guarantees.line import significance_level
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse
from tracecal.statistics.ranking_metrics import single_auroc

MOST_REASONS = 3  # why labelled answers have no probability
LABEL_PATHS = ("correct", "label")  # where a label is read unless its path is named
MIN_OF_CLASS = 10  # right and wrong answers that a column must equal to be taken for the label
SUSPICIOUS_AUROC = 0.99


def fit_calibrator(
    training: TrainingSet,
    fits: TrainingFits,
    task: str,
    settings: FitSettings,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
    estimator: str | None = None,
    recall: float | None = None,
    by: AnswerColumn | None = None,
    looks: int | None = None,
    earlier: CalibrationData | None = None,
) -> CalibratorFile:
    """Recommend one of the `fits` of a training set and find guaranteed error rates.

    One calibrator serves all names of `parts` (rows of `part_answers`). Custom estimators are
    never recommended, since a reader of the file may not have them. The recommended estimator takes
    the further columns of the answers (`also`) as inputs. A named `estimator` gives
    the probabilities and ranks the answers to keep; `recall` is the target share of right answers
    to keep, and `by` a column to count errors by. `looks` are planned at growing labels, of which
    `earlier` describes the one before (`with_look`). Raises `InputError` if the estimator cannot be
    computed, or the answers mix models or kinds of trace.
    """
    data = describe_answers(training, task, revision, vocabulary, parts)
    confidence = settings.risk_control.confidence
    data, level = with_look(data, training.records, confidence, looks, earlier)
    settings = settings.with_confidence(1 - level)
    if warning := describe_other_kinds(training.records, data):
        LOGGER.warning("%s", warning)
    ranking = choose_ranking(training, fits.estimators, estimator)
    answers = rank_answers(training, ranking)
    control = find_guarantees(ranking, answers, settings.risk_control, training.unit, recall, by)
    recommendation = recommend(training, fits, settings)
    if estimator is not None:
        recommendation = recommendation._replace(estimator=estimator, gain=None)
    missing = _count_missing(training, recommendation.estimator)
    data = data.model_copy(update={"without_probability": missing} | recommendation._asdict())
    custom = {name: str(score) for name, score in training.custom.items()}
    estimators = {
        name: CalibratedEstimator(
            features=fit.features, splits={}, final=fit.final, definition=custom.get(name)
        )
        for name, fit in fits.estimators.items()
    }
    predictions = fits.predictions.filter(estimator=recommendation.estimator)
    held_out = _hold_out(training, predictions, estimator or default_ranking(training))
    control = control.model_copy(update={"looks_confidence": looks_confidence(data)})
    population = population_of(held_out, control.most_parts is not None, lacks_guarantee=True)
    control = with_forecasts(control, population)
    # Refuse now what `read` would refuse.
    parse(CalibrationData, data.model_dump(mode="json", by_alias=True), "the calibrator")
    file = CalibratorFile.of(data, estimators)
    return file.with_keys(
        file.recommended(), risk_control=control, reference=ranking.reference(), held_out=held_out
    )


def describe_answers(
    training: TrainingSet,
    task: str,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
) -> CalibrationData:
    """Describe labelled answers; raises `InputError` if models or kinds of trace are mixed."""
    answers = training.records
    answered = answers.filter(pl.col("no_answer").is_null())
    entropy, top_k = usual_entropies(answers)
    model, *known_as = _models(answers)
    with_stop = answered.filter(pl.col("stop_token") != "none")
    stop_token = _known_value(with_stop, "stop_token", "none")
    processed = _known_value(answered, "processed", "unknown")
    reasoning = _single_value(answered, "reasoning", "kinds") or "none"
    dates = _days(answers["created"])
    vocabulary, vocabulary_from = vocabulary_used(answers, vocabulary)
    return CalibrationData(
        model=model,
        known_as=known_as,
        revision=revision,
        task=task,
        row_tasks=training.row_tasks,
        stop_token=stop_token,
        processed=processed,
        decodings=tuple(answers["decoding"].drop_nulls().unique().sort()),
        reasoning=reasoning,
        entropy=entropy,
        top_k=top_k,
        vocabulary=vocabulary,
        vocabulary_from=vocabulary_from,
        n=answers.height,
        groups=training.n_questions,
        unit=training.unit,
        base_rate=float(answers["correct"].mean()),
        answers=tuple(answers["fingerprint"].drop_nulls()),
        dates=dates,
        parts=parts,
        also=tuple(
            FurtherColumn(name=name, path=path) for name, path in training.own_columns.items()
        ),
    )


def _days(created: pl.Series) -> tuple[str, str] | None:
    """Return the first and the last day (UTC) of answers; None if a time is unknown."""
    if created.null_count():
        return None
    ends = (datetime.fromtimestamp(time, UTC) for time in (created.min(), created.max()))
    first, last = (f"{end:%Y-%m-%d}" for end in ends)
    return first, last


def _single_value(answers: pl.DataFrame, column: str, kinds: str) -> str | None:
    """Return the only value of a column; None without one. Raises `InputError` for several."""
    values = answers[column].drop_nulls().unique().sort().to_list()
    if len(values) > 1:
        raise InputError(
            f"the answers are of several {kinds} ({column}: {', '.join(values)}), but a calibrator "
            f"is for one. Split the file, or set one with --{column.replace('_', '-')}."
        )
    return values[0] if values else None


def _known_value(answers: pl.DataFrame, column: str, default: str) -> str:
    """Return the only known value of a column, or `default` without any value.

    Unknown values count as equal to the known one, as in scoring.
    """
    is_unknown = pl.col(column) == "unknown"
    known_answers = answers.filter(~is_unknown)
    if known_answers.height and (count := answers.filter(is_unknown).height):
        LOGGER.warning(
            "%d of %d labelled answers do not say %s: they are taken to be like the others (%s)",
            *(count, answers.height, QUESTIONS[column]["what"], QUESTIONS[column]["option"]),
        )
    rows = known_answers if known_answers.height else answers
    return _single_value(rows, column, "kinds") or default


def _models(answers: pl.DataFrame) -> list[str | None]:
    """Return the model's shortest name (None if unknown), then its longer spellings.

    Raises `InputError` for several models.
    """
    names = answers["model"].drop_nulls().unique().sort().to_list()
    for name in names:
        if all(name.lower() in model_spellings(spelling) for spelling in names):
            return [name, *(spelling for spelling in names if spelling != name)]
    return [_single_value(answers, "model", "models")]


def with_look(
    data: CalibrationData,
    labelled: pl.DataFrame,
    confidence: float,
    planned: int | None = None,
    earlier: CalibrationData | None = None,
) -> tuple[CalibrationData, float]:
    """Add to a description the looks at its labels: those of an `earlier` one, and this.

    Returns also the level of this look.

    Parameters
    ----------
    data : CalibrationData
        The description of the labelled answers.
    labelled : polars.DataFrame
        Their `fingerprint` and `correct`.
    confidence : float
        Confidence of all planned looks together; where none are planned, of each.
    planned : int, optional
        How many looks are planned, stated with the first.
    earlier : CalibrationData, optional
        Description of an earlier look. It counts if both share a labelled answer; the same answers
        with the same verdicts are the same look.
    """
    looks: tuple[Look, ...] = ()
    if earlier is not None and share_answers(data, earlier):
        looks = earlier.looks
        if planned not in (None, earlier.planned_looks):
            LOGGER.warning(
                "--looks is stated with the first look, which planned %s: it changes nothing",
                earlier.planned_looks or "none",
            )
        planned = earlier.planned_looks
    elif earlier is not None:
        LOGGER.warning(
            "--after: its file has none of these labelled answers, so this is a first look"
        )
    # Of the answers and their verdicts, whatever their order.
    rows = labelled.select(pl.col("fingerprint").fill_null(""), "correct").sort(pl.all())
    digest = hashlib.sha256(json.dumps(rows.rows()).encode()).hexdigest()[:16]
    level = next((look.level for look in looks if look.digest == digest), None)
    if level is None:
        level = significance_level(confidence) / (planned or 1)
        looks = (*looks, Look(labels=labelled.height, level=level, digest=digest))
    return data.model_copy(update={"looks": looks, "planned_looks": planned}), level


def share_answers(data: CalibrationData, earlier: CalibrationData) -> bool:
    """Whether a labelled answer of one is among those of the other."""
    return not {*data.answers}.isdisjoint(earlier.answers)


def looks_confidence(data: CalibrationData) -> float | None:
    """The confidence that no guarantee of all looks is false; None of a single one."""
    if len(data.looks) < 2:
        return None
    return max(0.0, round(1 - sum(look.level for look in data.looks), 12))


def _count_missing(training: TrainingSet, estimator: str) -> tuple[tuple[str, int], ...]:
    """Count the reasons why labelled answers get no probability from an estimator."""
    columns = training.estimators[estimator]
    missing = training.frame.filter(pl.any_horizontal(pl.col(columns).is_null()))
    rows = training.records.join(missing, on="example_id", how="semi")
    lacks = rows["lacks"].fill_null(UNDEFINED).str.replace_all(r"token \d+", "a token")
    counts = lacks.value_counts()
    reasons = counts.sort(["count", "lacks"], descending=[True, False]).rows()
    n_others = sum(count for _, count in reasons[MOST_REASONS:])
    rest = [("other reasons", n_others)] if n_others else []
    return (*reasons[:MOST_REASONS], *rest)


def _hold_out(training: TrainingSet, predictions: pl.DataFrame, ranker: str | None) -> HeldOut:
    """Describe labelled answers by their cross-fitted `predictions`, for `plan` and `explore`.

    `ranker` is the estimator that ranks; None: the fixed score.
    """
    ranking = fit_fixed_score(training.unlabelled.select(AMOUNTS))
    (fixed,) = probabilities(training.frame.select(ranking.inputs), [ranking.fit])
    labels = training.frame.select(
        "example_id",
        "correct",
        training.records["fingerprint"].alias("answer"),
        pl.Series("fixed", fixed).fill_nan(None),
        group="rank",
    )
    columns = ["group", "correct", "fold", "probability", "answer", "fixed"]
    rows = labels.join(predictions, on="example_id", how="left", validate="1:1")
    if ranker is not None:
        columns.append("by_fifths")
        by_fifths = (
            training.select(ranker).fitted_by_fifths().select("example_id", by_fifths="probability")
        )
        rows = rows.join(by_fifths, on="example_id", how="left", validate="1:1")
    rows = labels.select("example_id").join(rows, on="example_id", maintain_order="left")
    rounded = rows.select(columns).with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS))
    return HeldOut(**rounded.to_dict(as_series=False))


def require_no_label(training: TrainingSet, label: str | None = None) -> None:
    """Raise `InputError` if an own column is the label; warn if it nearly determines the label.

    Parameters
    ----------
    training : TrainingSet
        The labelled answers.
    label : str, optional
        The path that their labels were read from.
    """
    label_paths = LABEL_PATHS if label is None else (label,)
    for name, path in training.own_columns.items():
        if path in label_paths:
            raise InputError(_refusal(name, path, "is the path of the label"))
        column = f"{ALSO}{name}"
        rows = training.frame.select("correct", value=pl.col(column)).drop_nulls()
        correct, value = rows["correct"], rows["value"]
        if count_smaller_class(rows) < MIN_OF_CLASS:
            continue
        if (value == correct.cast(pl.Float64)).all():
            what = f"equals the label in all {rows.height} labelled answers"
            raise InputError(_refusal(name, path, what))
        auroc = single_auroc(value.to_numpy(), correct.to_numpy())
        if auroc is not None and auroc > SUSPICIOUS_AUROC:
            LOGGER.warning(
                "--also %s=%s tells right from wrong labels nearly perfectly (AUROC %.3f): what is "
                "guaranteed rests on it, and holds only if new answers get it before they are "
                "judged",
                *(name, path, auroc),
            )


def _refusal(name: str, path: str, what: str) -> str:
    return (
        f"--also {name}={path} {what}, so that new answers have no such column, or are judged "
        "already: leave it out."
    )
