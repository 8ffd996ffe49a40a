"""Cascades of two models: the value of escalating a small model's answers to a large one.

`cascade` takes labelled answers of both models to the same questions. Its `Cascade` holds a table
of routers, and the small model's calibrator with the thresholds that guarantee an accuracy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.record import own_column_paths
from tracecal.answers.sources import Answers, answers_in
from tracecal.calibration.bets import significance_level
from tracecal.calibration.cascade import (
    BELOW,
    BEST,
    KEPT_AT,
    LEAST_GAIN,
    cascade_table,
    task_curves,
)
from tracecal.calibration.cascade_guarantee import find_cascade_guarantee
from tracecal.calibration.costs import answer_costs
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.fits import Fit, probabilities
from tracecal.calibration.predictions import pick_baselines, with_picked
from tracecal.calibration.rated_answers import split_paired_answers
from tracecal.calibration.routing import ORACLE, RANDOM
from tracecal.calibration.splits import make_splits
from tracecal.calibrator.calibrator import Calibrator
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.fitting import fit_calibrator
from tracecal.calibrator.schema import (
    CalibrationData,
    CalibratorFile,
    CascadeControl,
    CascadeThreshold,
)
from tracecal.calibrator.settings import FitSettings, read_fit_settings
from tracecal.calibrator.trace_kinds import undecided
from tracecal.calibrator.training_set import TrainingSet, make_training_set
from tracecal.errors import InputError
from tracecal.estimators.estimator import PICKED, TRACE_PLUS, Entry, entries
from tracecal.estimators.registry import ESTIMATORS
from tracecal.io.files import atomic_write

ROUTER_LABELS = {
    PICKED: "selected baseline",
    BEST: "best baseline",
    TRACE_PLUS: "TRACE+",
    RANDOM: "random",
    ORACLE: "oracle",
}
# What makes a picture's bytes depend on the date, by suffix.
PICTURE_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}


@dataclass(frozen=True)
class Cascade:
    """The value of escalating a small model's answers to a large one.

    Attributes
    ----------
    table : polars.DataFrame
        A row per ``router`` and ``metric``, with intervals.
    calibrator : Calibrator
        The small model's calibrator, by whose guarantees `Calibrator.score` keeps answers
        (``guarantee``).
    """

    table: pl.DataFrame = field(repr=False)
    calibrator: Calibrator

    def __str__(self) -> str:
        return format_cascade(self)

    @property
    def models(self) -> tuple[str, str]:
        """The names of the small and the large model."""
        predictor = self.calibrator.predictor()
        return predictor.fitted_on.model or "unnamed", predictor.large or "unnamed"

    @property
    def router(self) -> tuple[str, CascadeControl]:
        """The estimator that routes, and the thresholds that its guarantees have."""
        estimators = self.calibrator.file.estimators.items()
        return next(
            (name, entry.cascade) for name, entry in estimators if entry.cascade is not None
        )

    def picture(self, path: str | Path) -> None:
        """Draw accuracy against cost, or against the share escalated without prices.

        The shares that guaranteed thresholds escalate are marked on the recommended fit's curve.

        Needs the extra ``pictures``.

        Parameters
        ----------
        path : path
            The picture, a file with the suffix .svg, .pdf or .png.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.cascade("small.jsonl", "large.jsonl").picture("cascade.svg")
        """
        from tracecal.pages import cost_and_accuracy, figure_style

        suffix = Path(path).suffix
        if suffix not in PICTURE_METADATA:
            raise InputError(f"{path}: expected a name that ends in {', '.join(PICTURE_METADATA)}.")
        labels = dict(zip(("small", "large"), self.models, strict=True))
        table = self.table.with_columns(small=pl.lit("small"), large=pl.lit("large"))
        routers = {*table["router"]}
        estimators = [Entry(**entry) for entry in entries(ESTIMATORS) if entry["id"] in routers]
        router, control = self.router
        shares = [row.escalated for row in control.thresholds if row.threshold is not None]
        figure = cost_and_accuracy.draw(
            table, estimators, labels, "seq_logp", every=True, router=router, guaranteed=shares
        )
        with figure_style.applied(), atomic_write(path) as part:
            figure.savefig(part, format=suffix[1:], metadata=PICTURE_METADATA[suffix])


Price = tuple[float, float]


def cascade(
    small: Answers,
    large: Answers,
    *,
    task: str = "cascade",
    config: str | Path | Mapping[str, Any] | None = None,
    large_model: str | None = None,
    small_price: Price | None = None,
    large_price: Price | None = None,
    reading: Reading | None = None,
) -> Cascade:
    """Measure the value of escalating a small model's answers to a large one.

    Both models answered the same questions. Answers are matched by id; questions that lack a label
    in either file are left out.

    Parameters
    ----------
    small : path, frame or rows
        Labelled answers of the small model with traces, in any format that `read_answers` reads.
    large : path, frame or rows
        Labelled answers of the large model to the same questions, with the same ids.
    task : str
        A name for the task.
    config : path or mapping, optional
        Settings as in `calibrate`; ``risk_control.cascades`` lists the guarantees to test.
    large_model : str, optional
        Name of the large model; by default as its answers state it.
    small_price : pair of float, optional
        Price of the small model: of a million prompt tokens, and of a million generated tokens.
    large_price : pair of float, optional
        Price of the large model, likewise.
    reading : Reading, optional
        How to read both files; ``model`` names the small model.

    Returns
    -------
    Cascade
        The table, and the small model's calibrator with the guarantees. Its text is what
        ``tracecal cascade`` prints, `Cascade.picture` draws it.

    Raises
    ------
    InputError
        If the two share no question with a label in both, or only one price is given; and as
        `calibrate`.

    Examples
    --------
    >>> import tracecal
    >>> result = tracecal.cascade("small.jsonl", "large.jsonl")
    >>> sorted(result.calibrator.predictor().thresholds, key=str)[-3:]
    ['below:0.01', 'below:0.02', 'below:0.05']
    >>> scored = result.calibrator.score("new.jsonl", guarantee="below:0.05")
    """
    if (small_price is None) != (large_price is None):
        raise InputError("give prices of both models: --small-price and --large-price.")
    paths = [Path(source).resolve() for source in (small, large) if isinstance(source, str | Path)]
    if len(paths) > len({*paths}):
        raise InputError(
            f"--small and --large are both {small}: a cascade is of two models, so give the "
            "answers of another one as --large."
        )
    settings = read_fit_settings(config)
    reading = reading or Reading()
    small_frame = answers_in(small, reading).frame
    large_reading = reading.model_copy(update={"model": large_model})
    large_frame = answers_in(large, large_reading).frame
    prices = None
    if small_price and large_price:
        prices = [
            {"prompt": prompt, "generated": generated}
            for prompt, generated in (small_price, large_price)
        ]
    fitted = fit_cascade(small_frame, large_frame, settings, prices, task, reading.vocabulary)
    return Cascade(fitted.table, Calibrator(fitted.file))


class FittedCascade(NamedTuple):
    """The table of routers (`ROWS`), the file of the small model's calibrator, and the router.

    The router is the estimator of the file that holds the thresholds of the cascade.
    """

    table: pl.DataFrame
    file: CalibratorFile
    router: str


def fit_cascade(
    small: pl.DataFrame,
    large: pl.DataFrame,
    settings: FitSettings,
    prices: Sequence[Mapping[str, float]] | None = None,
    task: str = "cascade",
    vocabulary: int | None = None,
) -> FittedCascade:
    """Fit the cascade of two models that answered the same questions, matched by `example_id`.

    Both frames have the columns of `RECORDS`; questions that lack an answer or a label in either
    frame are left out. `prices` are the small and the large model's prices per million tokens.
    Raises the errors of `fit_calibrator`.
    """
    if also := {**own_column_paths(small), **own_column_paths(large)}:
        raise InputError(
            f"--also {next(iter(also))}: a cascade is calibrated on the trace alone; leave it out."
        )
    large = large.filter(pl.col("correct").is_not_null())
    both = small.join(large.select("example_id"), on="example_id", how="semi")
    if both.is_empty():
        raise InputError(
            "the two files share no question with a label in both: answers to one question need "
            "the same id. Give its path with --id."
        )
    training = make_training_set(both, task, settings)
    pairs = _pair_answers(training, small, large, prices)
    file = fit_calibrator(
        training, training.fit_estimators(), task, settings, vocabulary=vocabulary
    )
    router, share = file.recommended(), settings.splits.calibration_share
    groups = training.frame.select("example_id", "group_id")
    splits = make_splits(groups, task, settings.seed, settings.splits.count, share)
    predictions, fits = training.calibrate(splits)
    table = _measure(training, splits, predictions, fits, pairs, router, settings)
    fit = fits[router].splits[0]
    decided = _decided(training, router, file.fitted_on)
    rated = _rate_first_split(training, splits, pairs, router, fit, decided)
    control = CascadeControl(
        large=", ".join(large["model"].drop_nulls().unique().sort()) or None,
        confidence=settings.risk_control.confidence,
        thresholds=_find_guarantees(rated, settings),
    )
    file = file.with_keys(router, cascade=control, splits={control.split: fit})
    return FittedCascade(table, file, router)


def _measure(
    training: TrainingSet,
    splits: pl.DataFrame,
    predictions: pl.DataFrame,
    fits: Mapping[str, EstimatorFits],
    pairs: pl.DataFrame,
    router: str,
    settings: FitSettings,
) -> pl.DataFrame:
    """Measure routing by each baseline, TRACE+ and the recommended estimator."""
    names = training.estimators
    baselines = [e.id for e in ESTIMATORS if e.role == "baseline" and e.id in names]
    picked = pick_baselines(training.frame, splits, names, fits, baselines)
    compared = [name for name in names if name in (TRACE_PLUS, router)]
    curves = task_curves(
        pairs,
        with_picked(predictions, picked),
        splits,
        "cascade",
        [*dict.fromkeys([*baselines, PICKED, *compared])],
        (settings.seed, settings.bootstrap.resamples, settings.bootstrap.level),
    )
    table = cascade_table({"cascade": curves}, baselines, settings.bootstrap.level)
    return table.filter(pl.col("task").is_null())


def _decided(training: TrainingSet, router: str, data: CalibrationData) -> pl.Series:
    """Return the ids of the answers that a threshold of the router decides about."""
    reasons = undecided(training.records, training.estimators[router], data)
    return training.records.filter(pl.Series(reasons, dtype=pl.String).is_null())["example_id"]


def _find_guarantees(rated: pl.DataFrame, settings: FitSettings) -> list[CascadeThreshold]:
    """Find the guarantees that the settings ask for."""
    parts, control = split_paired_answers(rated), settings.risk_control
    level = significance_level(control.confidence)
    guarantees = (
        find_cascade_guarantee(*parts, bound, target, level, control.largest_group)
        for bound, target in control.cascades.listed()
    )
    return [CascadeThreshold(**asdict(guarantee)) for guarantee in guarantees]


def _pair_answers(
    training: TrainingSet,
    small: pl.DataFrame,
    large: pl.DataFrame,
    prices: Sequence[Mapping[str, float]] | None,
) -> pl.DataFrame:
    """`example_id`, `group_id` and the columns of `task_curves`; costs are NaN without prices."""
    pairs = training.frame.select("example_id", "group_id")
    model_prices: Sequence[Mapping[str, float] | None] = prices or [None, None]
    for name, frame, price in zip(("small", "large"), (small, large), model_prices, strict=True):
        n_prompt, n_generated = (
            frame[column].list.len().cast(pl.Float64).to_numpy()
            for column in ("prompt_token_ids", "surprisal")
        )
        costs = answer_costs(n_prompt, n_generated, price, None)
        costs = np.full(frame.height, np.nan) if costs is None else costs
        columns = frame.select(
            "example_id", pl.col("correct").alias(name), pl.Series(f"{name}_cost", costs)
        )
        pairs = pairs.join(columns, on="example_id", how="inner", validate="1:1")
    return pairs


def _rate_first_split(
    training: TrainingSet,
    splits: pl.DataFrame,
    pairs: pl.DataFrame,
    router: str,
    fit: Fit,
    decided: pl.Series,
) -> pl.DataFrame:
    """`pairs` in the first split with the probabilities of its fit.

    An undefined probability is None, and so is that of an answer that is not `decided` because no
    threshold holds for it: such answers are escalated.
    """
    inputs = training.frame.select(training.estimators[router])
    (probability,) = probabilities(inputs, [fit])
    rated = training.frame.select("example_id", probability=pl.Series(probability).fill_nan(None))
    holds = pl.when(pl.col("example_id").is_in(decided.implode())).then("probability")
    return pairs.join(
        rated.select("example_id", probability=holds), on="example_id", validate="1:1"
    ).join(splits.filter(split=0), on="example_id", validate="1:1")


def format_cascade(result: Cascade) -> str:
    """Format the table and the thresholds as lines of text for a terminal."""
    table, router = result.table, result.calibrator.recommended
    control = result.calibrator.file.estimators[router].cascade
    assert control is not None  # the router of a cascade holds its thresholds
    facts = dict(table.filter(table["router"].is_null()).select("metric", "value").rows())
    small, large = result.models
    lines = [
        f"{table['n'][0]} questions: {small} is right on {facts['small_right']:.1%}, {large} on "
        f"{facts['large_right']:.1%}; {large} is wrong where {small} is right on "
        f"{facts['small_alone_right']:.1%}",
        "",
        f"{'routed by':20}{'area':>8}"
        + "".join(f"{f'gain at {share:.0%}':>14}" for share in KEPT_AT)
        + f"{'needed':>10}{'over random (area)':>26}",
    ]
    for name, label in ({router: LABELS[router]} | ROUTER_LABELS).items():
        metrics = {row["metric"]: row for row in table.filter(router=name).iter_rows(named=True)}
        if "area" not in metrics:
            continue
        gains = [metrics[f"gain_kept_at_{100 * share:.0f}"]["value"] for share in KEPT_AT]
        lines.append(
            f"{label:20}{metrics['area']['value']:>8.3f}"
            + "".join(f"{'–' if gain is None else f'{gain:.0%}':>14}" for gain in gains)
            + f"{metrics['needed']['value']:>10.0%}{_format_over_random(metrics['area']):>26}"
        )
    lines += [
        "",
        "area: mean accuracy over all shares escalated; gain: share of the large model's, – where",
        f"that is less than {100 * LEAST_GAIN:g} points; needed: share escalated within "
        f"{100 * BELOW:g} point of it;",
        "selected: on the calibration data; best: in hindsight, which nobody could have chosen",
        "",
        f"Thresholds on {LABELS[router]} with confidence {control.confidence:g}:",
    ]
    return "\n".join([*lines, *(f"  {_format_guarantee(row)}" for row in control.thresholds)])


def _format_guarantee(guarantee: CascadeThreshold) -> str:
    """Describe a guarantee and its threshold in one sentence."""
    accuracy = (
        f"at most {guarantee.promised:g} below the large model's accuracy"
        if guarantee.promise == "below"
        else f"an accuracy of at least {guarantee.promised:g}"
    )
    if guarantee.threshold is None:
        return f"{accuracy}: none; {guarantee.reason}"
    return (
        f"{accuracy}: keep from {guarantee.threshold:.3f}; escalates {guarantee.escalated:.0%}, "
        f"right on {guarantee.accuracy:.1%}"
    )


def _format_over_random(row: Mapping[str, Any]) -> str:
    if row["over_random"] is None:
        return ""
    if row["over_random_low"] is None:
        return f"{row['over_random']:+.3f}"
    ends = f"{row['over_random_low']:+.3f}, {row['over_random_high']:+.3f}"
    return f"{row['over_random']:+.3f} [{ends}]"
