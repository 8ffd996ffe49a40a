"""The ranking of answers that thresholds are tested on.

1. `ranking = choose_ranking(training, fits)` fixes it by the kind of log and the number of labels,
   and `Ranking.of_split` is that of a run. With few labels the fixed score ranks
   (`fit_fixed_score`): it averages amounts of surprisal and entropy, standardised on unlabelled
   answers.
2. `rank_answers(training, ranking)` gives all answers of the training set their scores, and
   `rank_split(ranking)` those of a run's split.
3. `count_reordered` compares it with the probabilities.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.groups import MIN_FITTED
from tracecal.calibrator.catalogue import FIXED_SCORE, MEAN_OF_THREE, SURPRISAL_RIDGE
from tracecal.calibrator.recommendation import count_smaller_class
from tracecal.calibrator.schema import ErrorRateControl, Reference
from tracecal.calibrator.trace_kinds import need_entropy
from tracecal.calibrator.training_set import SIDE_SPLIT, TrainingSet
from tracecal.errors import InputError
from tracecal.estimators.feature_sets import SURPRISAL_ON_LOGARITHMS, TRACE_PLUS_ON_LOGARITHMS
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.fits.fits import EstimatorFits, Fit, Logistic, probabilities
from tracecal.fits.regression import EITHER_SIGN
from tracecal.guarantees.error_rate import MIN_UNLABELLED, RankedAnswers
from tracecal.guarantees.part_tests import PartScores, RankedParts, most_parts

MIN_OF_CLASS = 3  # right and wrong labels that a ranking is fitted on, at least
MAX_REFERENCE = 500
# An amount counts where at least this share of the unlabelled traces has it.
PRESENT = 0.9
ROUNDING = 1e-9  # values that differ by less are equal
MEAN_SURPRISAL = "features.mean_surprisal_log_conf"
# The confidences among log ridge's inputs, each -ln(amount + 1e-9): larger is more confident.
AMOUNTS = tuple(
    f"features.{name}"
    for name in (*TRACE_PLUS_ON_LOGARITHMS, *SURPRISAL_ON_LOGARITHMS)
    if name not in EITHER_SIGN
)


class Ranking(NamedTuple):
    """The ranking of answers that thresholds are tested on.

    Attributes
    ----------
    ranked_by : str
        The id of an estimator, or 'fixed_score'.
    columns : list of str
        The fit's inputs.
    fit : Fit
        Maps the inputs to the score.
    tested : polars.DataFrame
        The rows of the training set's `frame` that test thresholds: one answer of each question.
    fitted : polars.DataFrame
        The other rows: their labels fit the ranking, or they stand for unlabelled answers.
    is_fitted : bool
        Whether the fit uses labels of this training set.
    split : int, optional
        Of a run: whose evaluation part tests.
    """

    ranked_by: str
    columns: list[str]
    fit: Fit
    tested: pl.DataFrame
    fitted: pl.DataFrame
    is_fitted: bool
    split: int | None = None

    @classmethod
    def of_split(
        cls,
        estimator: str,
        columns: Sequence[str],
        fits: EstimatorFits,
        answers: pl.DataFrame,
        splits: pl.DataFrame,
    ) -> "Ranking":
        """The ranking by an estimator of a run, in the split with the lowest number.

        Its calibration part fitted the ranking, and its evaluation part tests.

        Parameters
        ----------
        estimator, columns, fits
            The estimator's id, its inputs and its fits.
        answers : polars.DataFrame
            `example_id`, `correct`, the inputs and `represents` (`place_answers`), which says which
            answers of their questions count. Parts of answers have `parent_id`.
        splits : polars.DataFrame
            `example_id`, `split`, `rank` (the random order of groups) and `part`.
        """
        number = int(splits["split"].min())
        rows = splits.filter(split=number).join(answers, on="example_id", validate="1:1")
        rows = rows.filter("represents").sort("rank", "example_id")
        tested, fitted = (rows.filter(part=part) for part in ("evaluation", "calibration"))
        return cls(estimator, [*columns], fits.splits[number], tested, fitted, True, number)

    @property
    def features(self) -> list[str]:
        """The names of the inputs, as a calibrator's file holds them."""
        return [name.split(".", 1)[1] for name in self.columns]

    def score(self, rows: pl.DataFrame) -> np.ndarray:
        """Compute the scores [n] of `rows`; NaN where an input is missing."""
        return probabilities(rows.select(self.columns), [self.fit])[0]

    def decided_score(self, rows: pl.DataFrame) -> np.ndarray:
        """The scores [n] of `rows`; NaN, too, where no threshold on the inputs decides.

        An answer's trace alone says so, and no label does.
        """
        if not need_entropy(self.columns) or "has_usual_entropies" not in rows.columns:
            return self.score(rows)
        return np.where(rows["has_usual_entropies"], self.score(rows), np.nan)

    def reference(self) -> Reference:
        """The scores and lengths of answers that tested, at most MAX_REFERENCE, in random order."""
        rows = self.tested.drop_nulls(self.columns).head(MAX_REFERENCE)
        length = rows["features.log_length"].exp().round()
        return Reference(tuple(self.score(rows).tolist()), tuple(length.to_list()))


def choose_ranking(
    training: TrainingSet, fits: Mapping[str, EstimatorFits], estimator: str | None = None
) -> Ranking:
    """Fix the ranking, without the labels that test it.

    A threshold is guaranteed for answers that the score has not seen, so a label fits the ranking
    or tests thresholds, and never both (`place_answers` divides them). The first of these applies:

    1. An `estimator` is named: it ranks, fitted on the labels of side 'fit', a fifth of all.
    2. Fewer than MIN_FITTED questions have a trace: the fixed score ranks, which no label fits, and
       all labels test.
    3. No fit suits the log, as for one-token answers without entropies: likewise.
    4. The default fit ranks, fitted on side 'fit'; or the fixed score, where that side has fewer
       than MIN_OF_CLASS right or wrong answers.

    Raises `InputError` where the training set lacks the estimator.
    """
    frame = training.frame
    if estimator is not None and estimator not in training.estimators:
        raise InputError(
            f"--estimator {estimator}: it cannot be computed for these answers; choose one of "
            f"{', '.join(training.estimators)}."
        )
    testing = frame.filter("represents")
    name = estimator
    if name is None and frame.drop_nulls(MEAN_SURPRISAL)["rank"].n_unique() >= MIN_FITTED:
        name = default_ranking(training)
    if name is None:
        return _fixed_ranking(training, testing, frame.clear())
    tested, fitted = testing.filter(side="test"), frame.filter(side="fit")
    complete = fitted.drop_nulls(training.estimators[name])
    if estimator is None and count_smaller_class(complete) < MIN_OF_CLASS:
        return _fixed_ranking(training, tested, fitted)
    fit = fits[name].splits[SIDE_SPLIT]
    return Ranking(name, training.estimators[name], fit, tested, fitted, True)


def default_ranking(training: TrainingSet) -> str | None:
    """The estimator that ranks a log of this kind from MIN_FITTED groups on; None: no fit does."""
    names = training.estimators
    if LOG_RIDGE_ALSO.id in names:
        return LOG_RIDGE_ALSO.id
    if MEAN_OF_THREE in names and training.lists_alternatives:
        return MEAN_OF_THREE
    longest = training.frame["features.log_length"].max()
    return SURPRISAL_RIDGE if SURPRISAL_RIDGE in names and longest else None


def _fixed_ranking(training: TrainingSet, tested: pl.DataFrame, untested: pl.DataFrame) -> Ranking:
    """Rank by the fixed score, standardised on unlabelled answers or else on `untested` ones."""
    unlabelled = training.unlabelled.select(AMOUNTS)
    if unlabelled[MEAN_SURPRISAL].count() < MIN_UNLABELLED and untested.height:
        unlabelled = untested.select(AMOUNTS)
    fixed = fit_fixed_score(unlabelled)
    return Ranking(FIXED_SCORE, [*fixed.inputs], fixed.fit, tested, untested, False)


class FixedScore(NamedTuple):
    """A score that is fixed before labels are seen.

    Attributes
    ----------
    inputs : tuple of str
        The amounts that are averaged.
    fit : Logistic
        Maps the inputs to the score. It rises with the mean of the standardised inputs, lies
        between 0 and 1, and is no probability.
    """

    inputs: tuple[str, ...]
    fit: Logistic


def fit_fixed_score(unlabelled: pl.DataFrame) -> FixedScore:
    """Fix the score by answers whose labels are not used.

    Parameters
    ----------
    unlabelled : polars.DataFrame
        AMOUNTS of answers; an amount that the log does not give is None or absent. With fewer than
        MIN_UNLABELLED traces, or fewer than two amounts that vary, the score is the mean surprisal
        alone, which needs no standardisation.

    Examples
    --------
    >>> amounts = pl.DataFrame({name: np.arange(200) % 7 for name in AMOUNTS})
    >>> len(fit_fixed_score(amounts).inputs), len(fit_fixed_score(amounts.head(99)).inputs)
    (9, 1)
    """
    amounts = unlabelled.select(
        pl.col(name).cast(pl.Float64) for name in AMOUNTS if name in unlabelled.columns
    )
    n_traces = amounts[MEAN_SURPRISAL].count() if MEAN_SURPRISAL in amounts.columns else 0
    names, means, scales = [], [], []
    for name in amounts.columns if n_traces >= MIN_UNLABELLED else ():
        values = amounts[name].drop_nulls().to_numpy()
        if len(values) >= PRESENT * n_traces and np.ptp(values) > ROUNDING:
            names.append(name)
            means.append(float(values.mean()))
            scales.append(float(values.std()))
    if len(names) < 2:
        return FixedScore((MEAN_SURPRISAL,), Logistic([0.0], [1.0], [1.0], 0.0))
    return FixedScore(tuple(names), Logistic(means, scales, [1 / len(names)] * len(names), 0.0))


def rank_answers(training: TrainingSet, ranking: Ranking) -> RankedAnswers | RankedParts:
    """Compute the ranking scores of a training set's answers, or parts."""
    frame, testing = training.frame, training.unlabelled.filter("represents")
    fitted = ranking.fitted.filter("represents")
    is_enough = np.isfinite(ranking.decided_score(testing)).sum() >= MIN_UNLABELLED
    choosing = testing if is_enough or not fitted.height else fitted
    counted = testing if is_enough else frame.filter("represents")
    if "parent_id" in frame.columns:
        parents = pl.concat([frame["parent_id"], training.unlabelled["parent_id"]])
        return _ranked_parts(ranking, choosing, parents, counted)
    score, wrong = ranking.decided_score, ~ranking.tested["correct"].to_numpy()
    return RankedAnswers(
        score(ranking.tested),
        wrong,
        score(choosing),
        (score(fitted), ~fitted["correct"].to_numpy()) if ranking.is_fitted else None,
        _among_all(score(counted), counted, training),
    )


def rank_split(ranking: Ranking) -> RankedAnswers | RankedParts:
    """Compute the ranking scores of the answers of a run's split, or of their parts."""
    tested, fitted = ranking.tested, ranking.fitted
    if "parent_id" in tested.columns:
        parents = pl.concat([tested["parent_id"], fitted["parent_id"]])
        return _ranked_parts(ranking, fitted, parents)
    wrong = ~tested["correct"].to_numpy()
    return RankedAnswers(ranking.score(tested), wrong, ranking.score(fitted))


def _ranked_parts(
    ranking: Ranking,
    choosing: pl.DataFrame,
    parents: pl.Series,
    counted: pl.DataFrame | None = None,
) -> RankedParts:
    """Compute the ranking scores of parts; `parents` has the document of each part there is."""
    sizes = dict(parents.value_counts().iter_rows())
    tested, chooses, counts = (
        rows
        if rows is None
        else PartScores(
            ranking.decided_score(rows),
            rows["rank"].to_numpy(),
            np.array([sizes[name] for name in rows["parent_id"]], dtype=int),
        )
        for rows in (ranking.tested, choosing, counted)
    )
    wrong = ~ranking.tested["correct"].to_numpy()
    return RankedParts(tested, wrong, chooses, most_parts(np.array([*sizes.values()])), counts)


def _among_all(scores: np.ndarray, rows: pl.DataFrame, training: TrainingSet) -> np.ndarray:
    """The scores of `rows`, with NaN for as large a share of answers that were not given as there
    is among all answers, labelled or not.
    """
    frames = training.frame, training.unlabelled
    reasons = pl.concat([frame.filter("represents")["no_answer"] for frame in frames])
    n_missing = reasons.count()
    if not n_missing:
        return scores
    answered = scores[rows["no_answer"].is_null().to_numpy()]
    n_more = round(len(answered) * n_missing / max(len(reasons) - n_missing, 1))
    return np.concatenate([answered, np.full(n_more, np.nan)])


def count_reordered(
    training: TrainingSet, predictions: pl.DataFrame, control: ErrorRateControl
) -> dict[float, tuple[int, int]]:
    """How many labelled answers each guarantee keeps, and how many the probability would not.

    `predictions` are the cross-fitted probabilities of the estimator that a report shows, of the
    answers that have one. As many of the most probable answers are compared with those kept.
    """
    rows = training.frame.join(predictions, on="example_id").sort("probability", descending=True)
    usual = [f"features.{name}" for name in control.features]
    columns = training.estimators.get(control.ranked_by, usual)
    (score,) = probabilities(rows.select(columns), [control.fit])
    counts = {}
    for entry in control.thresholds:
        if entry.threshold is not None:
            is_kept = score >= entry.threshold
            n_kept = int(is_kept.sum())
            counts[entry.error_rate] = n_kept, n_kept - int(is_kept[:n_kept].sum())
    return counts
