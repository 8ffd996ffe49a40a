"""Surprisals and entropies of the steps of an answer."""

from collections.abc import Sequence

import numpy as np

from tracecal.answers.entropy_bounds import Entropy, entropy_bounds
from tracecal.answers.rounding import Rounding, detect_rounding
from tracecal.answers.step import SLACK, Step
from tracecal.answers.wrong_row import WrongRow

# Servers write this for a token that is not among the most likely ones.
UNLISTED = -9999.0


def known(steps: Sequence[Step]) -> np.ndarray:
    """The log-probabilities of each step [T, 1 + most], at most 0 and -inf where none is known: of
    the chosen token, and of the other tokens listed. Raises `WrongRow`.
    """
    try:
        rows = [_distinct(step) for step in steps]
        most = max(map(len, rows), default=1)
        padded = [row + [None] * (most - len(row)) for row in rows]
        values = np.array(padded, dtype=float).reshape(len(rows), most)
    except (TypeError, ValueError) as error:
        raise WrongRow("one of its log-probabilities is no number") from error
    for t, place in np.argwhere(~(values <= SLACK)):  # null and NaN too
        if padded[t][place] is not None:
            value = values[t, place]
            told = "NaN" if np.isnan(value) else f"{value:g}, above 0"
            raise WrongRow(f"token {t + 1} has the log-probability {told}")
    return np.where(values > UNLISTED, np.minimum(values, 0.0), -np.inf)


def _distinct(step: Step) -> list[float | None]:
    """The log-probabilities of the chosen token and of the others listed.

    Servers may add the chosen token to the k likeliest or list it twice: the list without it holds
    the likeliest of the others. Different tokens of one text differ in probability.
    """
    others = dict.fromkeys(step.top)
    others.pop((step.key, step.logprob), None)
    return [step.logprob, *[value for _, value in others]]


def surprisals(values: np.ndarray) -> tuple[list[float] | None, str | None]:
    """-ln p of each token (nats) by `known` values; or null and the reason."""
    if not len(values):
        return None, "no log-probabilities are given"
    if len(unknown := np.flatnonzero(values[:, 0] == -np.inf)):
        return None, f"the log-probability of token {unknown[0] + 1} is not given"
    return (0.0 - values[:, 0]).tolist(), None


def entropies(
    steps: Sequence[Step],
    values: np.ndarray,
    vocabulary: int | None,
    greedy: bool,
    error: float | None = None,
) -> tuple[Entropy | None, str | None]:
    """Bounds of each step's entropy by their `known` values; or null and the reason. Raises
    `WrongRow`.

    `greedy`: the answers were decoded greedily, so the chosen token is the likeliest one. `error`
    is the largest rounding error of a log-probability (nats); null: detected.
    """
    if not any(step.top for step in steps):
        return None, "no top log-probabilities are given"
    given = values > -np.inf
    logprobs, listed = np.where(given, values, 0.0), given.sum(1)
    if vocabulary is not None and listed.max() > vocabulary:
        t = (listed > vocabulary).argmax()
        more = f"{listed[t]} tokens are listed for token {t + 1}"
        raise WrongRow(f"{more}, more than the vocabulary's {vocabulary}")
    rounding = detect_rounding(values[given]) if error is None else Rounding(error)
    slack, total = SLACK + np.expm1(rounding.of(logprobs).max(1)), np.exp(values).sum(1)
    if (total > 1 + slack).any():
        t = (total > 1 + slack).argmax()
        raise WrongRow(f"the probabilities listed for token {t + 1} sum to {total[t]:.4g}, above 1")
    if not listed.all():
        return None, f"no top log-probabilities are given for token {listed.argmin() + 1}"
    least, own = logprobs.min(1), values[:, 0]
    if not greedy:  # the chosen token may be listed only because it was chosen
        of_others = logprobs[:, 1:].min(1, initial=0.0)
        least = np.where(given[:, 0] & (own <= least), of_others, least)
    cap = np.where([step.merged for step in steps], 1.0, np.exp(least))
    return entropy_bounds(values, vocabulary, cap, rounding), None


def most_listed(steps: Sequence[Step], values: np.ndarray) -> int:
    """How many different tokens a step lists with their `known` log-probability, at most."""
    given = values > -np.inf
    given[:, 0] &= [(step.key, step.logprob) in step.top for step in steps]
    return int(given.sum(1).max())
