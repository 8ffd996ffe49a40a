"""Thresholds that keep the error rate among the answers kept below a wished one.

Learn-then-Test (Angelopoulos et al. 2025; selective classification is their section on it) with
a fixed sequence of tests. For a threshold t let R(t) be the share of wrong answers among those
with probability >= t, over the answers that the model would give to further questions of the
task. R need not fall as t rises, so every threshold tried is a test of its own: H(t): R(t) > r.

- The probabilities come from a fit on the calibration part of one split, and the thresholds are
  quantiles of these probabilities on that same part. Both are fixed before anything of the tested
  answers is looked at, their scores included; quantiles of the tested answers' own scores would
  make the hypotheses themselves random, and the next line an approximation.
- Given that k of the tested answers are kept at t, their errors are binomial with k draws of
  probability R(t), as the answers are independent. So P(Bin(k, r) <= errors) is a p-value for
  H(t) whatever k is, and exact; where nothing is kept it is 1.
- The tests are made in a fixed order, the most selective first, each at the full level
  1 - confidence, and end at the first that fails. A false promise needs the first true H(t) of
  the sequence to be rejected: the chance is at most 1 - confidence (fixed-sequence testing).

The threshold promised is the last that passed: it keeps most. A promise holds for one wished
rate, model and task at a time; the answers of one `group_id` (translations, variants) are not
independent, so one of them is tested at most, and none whose group the fit has seen.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from scipy.stats import binom

from tracecal.calibrate.protocol import Calibrator, from_json

STEP = 0.02


@dataclass(frozen=True)
class Promise:
    """A threshold on the probability (null: none can promise this) and what it kept in the test.

    `kept` of `n` tested answers have a probability of at least `threshold`; `wrong` of these are.
    """

    error_rate: float
    threshold: float | None
    n: int
    kept: int
    wrong: int


def p_values(wrong: np.ndarray, kept: np.ndarray, error_rate: float) -> np.ndarray:
    """P(Bin(kept, error_rate) <= wrong): exact p-values for an error rate above `error_rate`."""
    return binom.cdf(wrong, kept, error_rate)


def passed(p: np.ndarray, confidence: float) -> np.ndarray:
    """How many tests of each sequence p [..., m] pass before the first that fails."""
    # Rounded, as 1 - 0.9 is a little less than 0.1.
    level = round(1 - confidence, 12)
    return np.cumprod(p <= level, axis=-1).sum(axis=-1)


def threshold_sequence(
    seen: np.ndarray, n: int, error_rate: float, confidence: float
) -> np.ndarray:
    """Thresholds to test on `n` answers, falling: quantiles of the probabilities `seen` in the fit.

    The first would keep about twice as many answers as suffice where none of them is wrong: with
    fewer a test has little power, and the sequence would often end where it begins. Each further
    one keeps a share `STEP` more. Of the tested answers only their number counts.
    """
    if not len(seen):
        return seen
    enough = math.ceil(math.log(1 - confidence) / math.log(1 - error_rate))
    start = min(2 * enough / max(n, 1), 1.0)
    shares = np.minimum(np.append(np.arange(start, 1.0, STEP), 1.0), 1.0)
    ranked = np.sort(seen)[::-1]
    return np.unique(ranked[np.ceil(shares * len(seen)).astype(int) - 1])[::-1]


def promise(
    seen: np.ndarray,
    probability: np.ndarray,
    correct: np.ndarray,
    error_rate: float,
    confidence: float,
) -> Promise:
    """The most inclusive threshold that fixed-sequence testing allows.

    `seen` [c] are probabilities of the answers that were fitted on, `probability` and `correct`
    [n] those of independent answers that were not.
    """
    thresholds = threshold_sequence(seen, len(probability), error_rate, confidence)
    over = probability[:, None] >= thresholds
    kept, wrong = over.sum(axis=0), (over & ~correct[:, None]).sum(axis=0)
    count = int(passed(p_values(wrong, kept, error_rate), confidence))
    if not count:
        return Promise(error_rate, None, len(probability), 0, 0)
    last = count - 1
    return Promise(
        error_rate, float(thresholds[last]), len(probability), int(kept[last]), int(wrong[last])
    )


def independent(split: pl.DataFrame) -> pl.DataFrame:
    """Which answers of a split's evaluation part are independent of each other and of the fit.

    Of each `group_id` the answer with the lowest `rank`, a seeded order: where a group has an
    answer in the calibration part, that is the one, and the group is left out.
    """
    first = split.sort("rank").unique("group_id", keep="first", maintain_order=True)
    return first.filter(part="evaluation").drop("part", "rank", "group_id")


def risk_control(
    fits: Mapping[str, Mapping],
    answers: pl.DataFrame,
    split: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
) -> dict[str, object]:
    """The promises of one estimator as plain JSON, for the fit of one split.

    `fits` is its entry of the calibrators. `answers` holds `example_id`, `group_id`, `correct`
    and its features; `split` the `example_id`, `split`, `rank` and `part` of one split.
    """
    number = int(split["split"][0])
    calibrator = from_json(fits["splits"][str(number)])
    features = list(fits["features"])
    placed = split.join(
        answers.drop_nulls(features), on="example_id", how="inner", validate="1:1"
    ).sort("rank")
    seen = _predict(calibrator, placed.filter(part="calibration"), features)
    fresh = independent(placed)
    probability, correct = _predict(calibrator, fresh, features), fresh["correct"].to_numpy()
    return {
        "split": number,
        "confidence": confidence,
        "thresholds": [
            asdict(promise(seen, probability, correct, rate, confidence))
            for rate in sorted(error_rates)
        ],
    }


def _predict(calibrator: Calibrator, rows: pl.DataFrame, features: Sequence[str]) -> np.ndarray:
    return calibrator.predict(rows.select(features).cast(pl.Float64).to_numpy())
