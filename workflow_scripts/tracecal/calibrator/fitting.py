"""Fitting calibrators on a file of labelled answers, by the workflow's protocol."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import stdtrit

from tracecal.answers.own_columns import own_column_paths
from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import ENTROPY_KIND
from tracecal.calibration.few_labels import by_part, part_codes
from tracecal.calibration.fits import from_json
from tracecal.calibration.groups import group_answers
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.risk_control import control_risk
from tracecal.calibration.settings import SEED, Bootstrap, Calibration, RiskControl, Splits
from tracecal.calibration.splits import make_splits
from tracecal.calibrator.schema import (
    DEFAULT,
    LABELS,
    QUESTIONS,
    FittedOn,
    FurtherColumn,
    also_inputs,
    default_of,
    fingerprints,
    other_kinds,
    resting_on,
    spellings,
    undecided,
)
from tracecal.errors import InputError
from tracecal.estimators.estimator import OwnFit
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import NO_CUSTOM, TRACE_INPUTS, Custom, compute_inputs
from tracecal.features.features import FEATURES
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded
from tracecal.io.settings import Strict, parse

FEWEST = 20
FOLDS = 5
DIGITS = 6  # of the held-out probabilities in a calibrator's file
MOST_WATCHED = 500
MOST_TESTED = 5000  # groups that thresholds are tested on
# An estimator is a constant with fewer different values, or with this share of one value.
FEWEST_VALUES, MOST_ALIKE = 5, 0.9


class FitSettings(Strict):
    """How a calibrator is fitted; the keys are the configuration's own."""

    seed: int = Field(default=SEED, description="of splits, resamples and draws")
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()
    bootstrap: Bootstrap = Bootstrap()


class Labelled(NamedTuple):
    """What a calibrator is fitted on.

    `frame` holds `example_id`, `correct`, `group_id` and all inputs; `estimators` are those that
    can be computed, with their inputs; `splits` are those of the protocol.
    """

    frame: pl.DataFrame
    estimators: dict[str, list[str]]
    splits: pl.DataFrame
    part_names: Sequence[str] = ()

    @property
    def first_split(self) -> pl.DataFrame:
        """The split whose fit has the guarantees."""
        return self.splits.filter(pl.col("split") == 0)

    def fits(self) -> dict[str, OwnFit]:
        """The estimators that are fitted in a way of their own, and how."""
        own = {e.id: e.fit for e in OF_FILES if e.id in self.estimators and e.fit}
        return by_part(self.estimators, own)[1] if self.part_names else own

    def cross_fitted(self, settings: FitSettings, part: str | None = None) -> pl.DataFrame:
        """`estimator`, `example_id`, `fold` and `probability` by fits without the answer's fold.

        `part` restricts it to that part of the first split. Folds are of whole groups.
        """
        rows = self.first_split
        rows = rows if part is None else rows.filter(part=part)
        ranks = rows["rank"].rank("dense") - 1
        rows = rows.with_columns(fold=ranks % min(FOLDS, ranks.n_unique()))
        held_out = pl.when(pl.col("fold") == pl.col("split")).then(pl.lit("evaluation"))
        folds = pl.concat(
            rows.with_columns(split=pl.lit(fold, pl.Int64)).with_columns(
                part=held_out.otherwise(pl.lit("calibration"))
            )
            for fold in rows["fold"].unique().sort()
        )
        answers = self.frame.join(rows.select("example_id"), on="example_id", how="semi")
        predictions, _ = calibrate_all(
            answers,
            folds,
            self.estimators,
            settings.calibration.method,
            self.fits(),
            part_names=self.part_names,
        )
        return predictions.rename({"split": "fold"})


def calibrate_answers(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
    known: Labelled | None = None,
) -> dict[str, object]:
    """The calibrators of all estimators that need only a trace, as plain JSON; `custom` ones too,
    which are never the recommended one, as what reads the file may not know them. The recommended
    one takes further columns, with which answers were read (`also`), as inputs. `known` are what
    `labelled` makes of the answers, where that is there already.

    `answers` has the columns of `RECORDS`; answers without a label are left out. Where they are
    `parts` of answers, as `part_answers` makes them, one calibrator serves all names. Raises
    `InputError` where too few remain, where they mix models or kinds of trace, or where equal
    answers have different labels.
    """
    known, also = (
        known or labelled(answers, task, settings, parts, custom),
        own_column_paths(answers),
    )
    usable = answers.join(known.frame.select("example_id"), on="example_id", how="semi")
    usable = usable.sort("example_id")
    split = _tested(known.first_split)
    # Of answers that no threshold is tested on, as it decides which ones are.
    untested = usable.join(split.filter(part="calibration"), on="example_id", how="semi")
    (entropy, top_k), (model, *known_as) = usual_entropies(untested), _models(usable)
    fitted_on = FittedOn(
        model=model,
        known_as=known_as,
        revision=revision,
        task=task,
        stop_token=_known(usable.filter(pl.col("stop_token") != "none"), "stop_token", "none"),
        processed=_known(usable, "processed", "unknown"),
        reasoning=_one(usable, "reasoning", "kinds") or "none",
        entropy=entropy,
        top_k=top_k,
        vocabulary=vocabulary,
        n=usable.height,
        groups=known.frame["group_id"].n_unique(),
        base_rate=float(usable["correct"].mean()),
        answers=tuple(fingerprints(usable).drop_nulls()),
        dates=_days(usable["created"]),
        parts=parts,
        also=tuple(FurtherColumn(name=name, path=path) for name, path in also.items()),
    )
    if told := other_kinds(usable, fitted_on):
        LOGGER.warning("%s", told)
    method = settings.calibration.method
    _, calibrators = calibrate_all(
        known.frame,
        known.first_split,
        known.estimators,
        method,
        known.fits(),
        part_names=known.part_names,
    )
    choice = chosen(known, calibrators, settings)
    fitted_on = fitted_on.model_copy(update=choice._asdict())
    control = settings.risk_control
    left = split.filter(part="evaluation").join(known.frame, on="example_id").sort("example_id")
    for name, columns in known.estimators.items():
        values = {column.split(".", 1)[1]: column for column in columns}
        reasons = pl.Series(undecided(usable, columns, fitted_on), dtype=pl.String)
        decided = usable.select("example_id").filter(reasons.is_null())
        rows = known.frame.select("example_id", "correct", **values)
        calibrators[name]["risk_control"] = control_risk(
            calibrators[name],
            rows.join(decided, on="example_id", how="semi"),
            split,
            control.error_rates,
            control.confidence,
            largest_group=control.largest_group,
            forecast=name == choice.estimator,
        )
        calibrators[name]["reference"] = _reference(calibrators[name], columns, left, settings.seed)
        if name in custom:
            calibrators[name]["definition"] = str(custom[name])
        if name == LOG_RIDGE_ALSO.id:
            calibrators[name]["risk_control"]["about"] += (
                f"; answers are kept by {resting_on(also)}"
            )
    named = usable.select("example_id", answer=fingerprints(usable))
    calibrators[choice.estimator]["held_out"] = _held_out(known, choice.estimator, settings, named)
    told = fitted_on.stored()
    parse(FittedOn, told, "the calibrator")  # names that no reader of it would take end here
    return {"fitted_on": told, **calibrators}


def _tested(split: pl.DataFrame) -> pl.DataFrame:
    """A split whose evaluation part has at most MOST_TESTED groups, the first in its random order:
    more would cost time and hardly move a threshold.
    """
    ranks = split.filter(part="evaluation")["rank"].unique().sort()
    if len(ranks) <= MOST_TESTED:
        return split
    LOGGER.info("thresholds are tested on %d of the %d questions", MOST_TESTED, len(ranks))
    return split.filter((pl.col("part") == "calibration") | (pl.col("rank") < ranks[MOST_TESTED]))


def _reference(
    fits: Mapping[str, Any], columns: list[str], left: pl.DataFrame, seed: int
) -> dict[str, list[float]]:
    """Values of answers that the first split's fit has not seen (`left`, by `example_id`), for
    monitors to compare with.

    One of each group, as members of a group are alike, drawn at random among those with all
    `columns`; at most MOST_WATCHED.
    """
    left = left.drop_nulls(columns)
    order = pl.Series("order", seeded("reference", seed).permutation(left.height))
    drawn = left.lazy().with_columns(order).sort("rank", "order")
    first = drawn.unique("rank", keep="first", maintain_order=True).head(MOST_WATCHED)
    rows = first.select({"features.log_length", *columns}).collect()
    fitted = from_json(fits["splits"]["0"])
    length = rows["features.log_length"].drop_nulls().exp().round()
    return {
        "probability": fitted.predict(rows.select(columns).to_numpy()).tolist(),
        "length": length.to_list(),
    }


def labelled(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
) -> Labelled:
    """The labelled ones of `answers`, their inputs, the estimators and the splits.

    Of `parts` of answers the groups are those of the answers.
    """
    judged = answers.filter(pl.col("correct").is_not_null()).sort("example_id")
    if judged.height < FEWEST:
        raise InputError(
            f"{judged.height} of {answers.height} answers are labelled; at least {FEWEST} are "
            "needed. Add a column 'correct', or give its path with --label."
        )
    if judged["model"].null_count() == judged.height:
        LOGGER.warning(
            "no answer names its model, so that the calibrator is used for answers of any: name it "
            "with --model"
        )
    groups = judged.select("example_id", "group_id") if parts else group_answers(judged)
    frame = judged.select("example_id", "correct").join(groups, on="example_id", validate="1:1")
    also = [*own_column_paths(answers)]
    names = (*TRACE_INPUTS, *(f"scores.{name}" for name in custom), *also_inputs((), also))
    frame = frame.join(compute_inputs(judged, names, custom), on="example_id", validate="1:1")
    count, share = settings.splits.count, settings.splits.calibration_share
    splits = make_splits(groups, task, settings.seed, count, share)
    estimators = _computable(frame, judged, custom)
    if also:
        estimators |= {LOG_RIDGE_ALSO.id: _with_columns(frame, also)}
    names = parts.pooled if parts and settings.calibration.method == "platt" else ()
    if not names:
        return Labelled(frame, estimators, splits)
    frame = frame.join(part_codes(judged, names), on="example_id", validate="1:1")
    own = Labelled(frame, estimators, splits).fits()
    return Labelled(frame, by_part(estimators, own)[0], splits, names)


def _held_out(
    known: Labelled, estimator: str, settings: FitSettings, named: pl.DataFrame
) -> dict[str, list]:
    """An estimator's probabilities by fits that had not seen the answer, with its fold, label and
    group, for `tracecal plan`; and its fingerprint (`answer` of `named`), for `tracecal explore`.
    """
    alone = known._replace(estimators={estimator: known.estimators[estimator]})
    rows = alone.cross_fitted(settings).join(
        known.frame.select("example_id", "correct", "group_id"), on="example_id", validate="1:1"
    )
    rows = rows.join(named, on="example_id", validate="1:1")
    rows = rows.sort("example_id").with_columns(group=pl.col("group_id").rank("dense") - 1)
    rounded = rows.with_columns(pl.col("probability").round_sig_figs(DIGITS))
    columns = ("group", "correct", "fold", "probability", "answer")
    return rounded.select(columns).to_dict(as_series=False)


class Choice(NamedTuple):
    """The `estimator` that is recommended, with its `gain` as in `FittedOn`, and the `ranking`."""

    ranking: tuple[str, ...]
    estimator: str
    gain: tuple[float, float, float] | None = None


def chosen(known: Labelled, calibrators: Mapping[str, Any], settings: FitSettings) -> Choice:
    """DEFAULT, unless another estimator's Brier score is lower by more than its interval.

    By cross-fitting within the calibration part of the first split, so that the choice sees none of
    the answers that thresholds are tested on and the report counts. The interval is one that would
    hold for all estimators at once (Bonferroni). Where DEFAULT cannot be computed or is a constant,
    it is the estimator with the smallest Brier score that is none; of constants alone DEFAULT.
    Only estimators that are built in are looked at. With columns of the user's own it is DEFAULT
    with these.
    """
    default = default_of(known.estimators)
    own = {name: columns for name, columns in known.estimators.items() if name in LABELS}
    known = known._replace(estimators=own)
    labels = known.frame.select("example_id", "correct", "group_id")
    errors = known.cross_fitted(settings, "calibration").join(labels, on="example_id")
    squared = (pl.col("probability") - pl.col("correct")) ** 2
    errors = errors.with_columns(squared=squared)
    scores = errors.group_by("estimator").agg(brier=pl.mean("squared"), n=pl.len())
    most = scores.filter(pl.col("n") == pl.col("n").max())
    ranked = most.sort(pl.col("brier").round(12), "estimator")["estimator"].to_list()
    part = known.first_split.filter(part="calibration")
    seen = known.frame.join(part, on="example_id", how="semi")
    varied = {name for name in own if varies(seen, known.estimators[name], calibrators[name])}
    ranking = tuple(sorted(ranked, key=lambda name: name not in varied))
    if default not in varied:
        fixed = default if default in ranking and not varied.intersection(ranking) else ranking[0]
        return Choice(ranking, fixed)
    best = ranking[0]
    paired = errors.filter(estimator=default).join(
        errors.filter(estimator=best), on="example_id", suffix="_best"
    )
    level = 1 - (1 - settings.bootstrap.level) / max(len(varied) - 1, 1)
    difference = (paired["squared"] - paired["squared_best"]).to_numpy()
    gain = mean_interval(difference, paired["group_id"].to_numpy(), level)
    if best == default or not gain[1] > 0:
        return Choice(ranking, default)
    return Choice(ranking, best, gain)


def varies(rows: pl.DataFrame, columns: Sequence[str], fits: Mapping[str, Any]) -> bool:
    """Whether the first split's fit tells the `rows` apart: five different probabilities or more,
    and none of them for nine in ten.
    """
    x = rows.select(columns).drop_nulls().cast(pl.Float64).to_numpy()
    probability = from_json(fits["splits"]["0"]).predict(x).round(DIGITS)
    counts = np.unique(probability, return_counts=True)[1]
    return len(counts) >= FEWEST_VALUES and counts.max() < MOST_ALIKE * len(x)


def mean_interval(
    values: np.ndarray, group: np.ndarray, level: float
) -> tuple[float, float, float]:
    """The mean of `values` [n] and the ends of its interval, by the variance between groups [n].

    Student's t with a degree of freedom less than there are groups; a single group has no interval.
    """
    mean = float(values.mean())
    _, member_of = np.unique(group, return_inverse=True)
    totals = np.bincount(member_of, weights=values - mean)
    groups = len(totals)
    if groups < 2:
        return mean, -np.inf, np.inf
    error = np.sqrt(groups / (groups - 1) * (totals**2).sum()) / len(values)
    reach = float(stdtrit(groups - 1, (1 + level) / 2) * error)
    return mean, mean - reach, mean + reach


def usual_entropies(answers: pl.DataFrame) -> tuple[str, int | None]:
    """The kind of entropies that most of the answers with any have, as in `FittedOn`, and the usual
    number of listed tokens among these.
    """
    known = answers.filter(pl.col("entropy").is_not_null()).select("top_k", kind=ENTROPY_KIND)
    kind = known["kind"].mode().min() or "none"
    return kind, known.filter(kind=kind)["top_k"].drop_nulls().mode().min()


def _days(created: pl.Series) -> tuple[str, str] | None:
    """The first and the last day (UTC) of answers; null where a time is not known."""
    if created.null_count():
        return None
    ends = (datetime.fromtimestamp(time, UTC) for time in (created.min(), created.max()))
    first, last = (f"{end:%Y-%m-%d}" for end in ends)
    return first, last


def _computable(
    frame: pl.DataFrame, labelled: pl.DataFrame, custom: Custom
) -> dict[str, list[str]]:
    """The estimators that can be computed for enough answers, and their inputs."""
    known = set(frame.columns)
    of_traces = {entry.id: entry.inputs for entry in ESTIMATORS if known.issuperset(entry.inputs)}
    of_traces |= {name: [f"scores.{name}"] for name in custom}
    usable = {
        name: frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()
        for name, columns in of_traces.items()
    }
    left_out = [name for name, count in usable.items() if count < FEWEST]
    if left_out:
        reasons = labelled["lacks"].drop_nulls().unique().sort().to_list() or ["undefined"]
        LOGGER.warning("%s left out: %s", ", ".join(left_out), "; ".join(reasons[:3]))
    if len(left_out) == len(of_traces):
        raise InputError("no answer has log-probabilities: there is nothing to calibrate.")
    return {name: columns for name, columns in of_traces.items() if name not in left_out}


def _with_columns(frame: pl.DataFrame, also: Sequence[str]) -> list[str]:
    """The inputs of the fit with columns of the user's own: those of DEFAULT that are known of
    enough answers, then the columns. Raises `InputError` where these are not, or take a name that
    a feature has.
    """
    if taken := [name for name in also if name in FEATURES]:
        raise InputError(f"--also {taken[0]}: a feature of traces has this name; choose another.")
    every = next(entry.inputs for entry in ESTIMATORS if entry.id == DEFAULT)
    of_trace = [name for name in every if frame[name].count() >= FEWEST]
    columns = also_inputs(of_trace, also)
    known = frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()
    if known < FEWEST:
        raise InputError(
            f"{known} of {frame.height} labelled answers have a trace and {' and '.join(also)}; at "
            f"least {FEWEST} are needed. Give the path of each in a row (--also {also[0]}=PATH)."
        )
    return columns


def _one(answers: pl.DataFrame, column: str, kinds: str) -> str | None:
    """The only value of a column; null where it has none. Raises `InputError` for several."""
    values = answers[column].drop_nulls().unique().sort().to_list()
    if len(values) > 1:
        raise InputError(
            f"the answers are of several {kinds} ({column}: {', '.join(values)}), but a calibrator "
            f"is for one. Split the file, or set one with --{column.replace('_', '-')}."
        )
    return values[0] if values else None


def _models(answers: pl.DataFrame) -> list[str | None]:
    """The model's name, null where none is known, then its longer spellings. Raises `InputError`
    for several models.
    """
    names = answers["model"].drop_nulls().unique().sort().to_list()
    for name in names:
        if all(name.lower() in spellings(other) for other in names):
            return [name, *(other for other in names if other != name)]
    return [_one(answers, "model", "models")]


def _known(answers: pl.DataFrame, column: str, none: str) -> str:
    """As `_one`, of those values of a column that are known: an unknown one counts as equal, as it
    does where answers are scored. `none` where it has no value at all.
    """
    unknown = pl.col(column) == "unknown"
    known = answers.filter(~unknown)
    if known.height and (count := answers.filter(unknown).height):
        LOGGER.warning(
            "of %d of %d labelled answers it is not known %s: they count as the others (%s)",
            *(count, answers.height, QUESTIONS[column]["what"], QUESTIONS[column]["option"]),
        )
    return _one(known if known.height else answers, column, "kinds") or none
