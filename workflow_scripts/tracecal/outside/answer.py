"""The confidence of one answer from two lists of floats, in a fraction of a millisecond.

The features are those of `operate.features`, computed for a single answer with NumPy; tests check
that the values are equal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.errors import InputError
from tracecal.operate import operators as op
from tracecal.outside.fitted import Fitted, interval

Feature = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Confidence:
    """The calibrated probability that an answer is right; where it is null, the `reason`.

    Exact entropies would give a probability between `lower` and `upper`. `keep` says whether the
    answer is kept at the target error rate; null where none was asked for or can be promised.
    """

    probability: float | None
    lower: float | None = None
    upper: float | None = None
    keep: bool | None = None
    reason: str | None = None


def _decayed(x: np.ndarray, decay: float) -> float:
    weights = np.exp(-np.arange(len(x)) / decay)
    return float(weights @ x / weights.sum())


def _slope(x: np.ndarray) -> float:
    n = len(x)
    centred = np.arange(n) - (n - 1) / 2
    return float(centred @ x / (n * (n * n - 1) / 12)) if n > 1 else 0.0


def _peak(x: np.ndarray, window: int) -> float:
    if len(x) < window:
        return float(x.mean())
    return float(np.convolve(x, np.ones(window), "valid").max() / window)


def _risk(s: np.ndarray, h: np.ndarray) -> float:
    parts = (_decayed(h, op.DECAY), _peak(h, op.WINDOW), s.sum() / len(s) ** op.LENGTH_EXPONENT)
    return float(np.dot((op.ALPHA, op.BETA, op.GAMMA), parts))


FEATURES: dict[str, Feature] = {
    "features.first3_entropy_conf": lambda s, h: np.exp(-h[:3].mean()),
    "features.mean_entropy_conf": lambda s, h: np.exp(-h.mean()),
    "features.log_length": lambda s, h: np.log(len(s)),
    "features.entropy_slope": lambda s, h: _slope(h),
    "features.decayed_entropy_conf_2": lambda s, h: np.exp(-_decayed(h, 2)),
    "features.decayed_entropy_conf_4": lambda s, h: np.exp(-_decayed(h, 4)),
    "features.decayed_surprisal_conf_2": lambda s, h: np.exp(-_decayed(s, 2)),
    "features.decayed_surprisal_conf_4": lambda s, h: np.exp(-_decayed(s, 4)),
    "scores.trace": lambda s, h: np.exp(-_risk(s, h)),
}


def score_answer(
    fitted: Fitted,
    surprisal: Sequence[float],
    entropy: Sequence[float],
    error_rate: float | None = None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> Confidence:
    """The confidence of an answer whose tokens have these surprisals and entropies (nats).

    Bounds of the entropies, `lower` and `upper`, give the probability's own bounds. Raises
    `InputError` where the lists are empty, of unequal lengths, not finite or negative, or where
    the calibrator needs more than a trace.
    """
    lists = [surprisal, entropy, *(bound for bound in (lower, upper) if bound is not None)]
    # Rounded as traces are stored, so that an answer has one confidence everywhere.
    arrays = [np.asarray(values, dtype=np.float32).astype(float) for values in lists]
    if len(set(map(len, arrays))) > 1 or not len(arrays[0]):
        raise InputError("an answer must have one surprisal and one entropy per token, at least 1")
    if not all(np.isfinite(values).all() and (values >= 0).all() for values in arrays):
        raise InputError("surprisals and entropies must be finite and not negative, in nats")
    s, h = arrays[:2]
    x = _inputs(fitted, s, h)
    probability = float(fitted.final.predict(x)[0])
    least = most = probability
    if lower is not None and upper is not None:
        ends = interval(fitted.final, *_bounds(fitted, s, *arrays[2:]))
        least, most = (float(end[0]) for end in ends)
    kept = fitted.keeps(x, error_rate) if error_rate is not None else None
    keep = None if kept is None else bool(kept[0])
    return Confidence(probability, least, most, keep)


def _inputs(fitted: Fitted, s: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The calibrator's inputs, [1, d]."""
    if missing := [name for name in fitted.inputs if name not in FEATURES]:
        raise InputError(
            f"{fitted.estimator} needs {missing[0]}, which cannot be computed from one answer's "
            "two lists; score a file of answers instead, or use trace_plus."
        )
    return np.array([[float(FEATURES[name](s, h)) for name in fitted.inputs]])


def _bounds(
    fitted: Fitted, s: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest inputs of entropies within their bounds, both [1, d]."""
    ends = np.concatenate([_inputs(fitted, s, low), _inputs(fitted, s, high)])
    if "features.entropy_slope" in fitted.inputs:
        half, place = len(s) // 2, fitted.inputs.index("features.entropy_slope")
        falling = np.concatenate([high[:half], low[half:]])
        rising = np.concatenate([low[:half], high[half:]])
        ends[:, place] = _slope(falling), _slope(rising)
    return ends.min(axis=0, keepdims=True), ends.max(axis=0, keepdims=True)
