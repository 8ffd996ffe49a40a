"""The log-probabilities of steps as an array, and surprisals and entropies from them.

First `listed_logprobs(steps)`, then `surprisals` and `step_entropies` of the array. Both return
None and the reason where a value is missing.
"""

from collections.abc import Sequence

import numpy as np

from tracecal.answers.entropy_bounds import EntropyBounds, Rounding, detect_rounding, entropy_bounds
from tracecal.answers.step import SLACK, Step, generated_entries, is_same_logprob
from tracecal.errors import WrongRow

# Servers write this for a token that is not among the likeliest ones.
UNLISTED = -9999.0


def listed_logprobs(steps: Sequence[Step]) -> np.ndarray:
    """The log-probabilities [T, 1 + k] of each step: of the generated token, then of the others.

    At most 0, and -inf where none is listed. Raises `WrongRow` for values above 0 and NaN.

    >>> listed_logprobs([Step("a", 1, -0.25, [("b", -2.0)], "a"), Step("c", 3, None)])
    array([[-0.25, -2.  ],
           [ -inf,  -inf]])
    """
    try:
        rows = [_distinct_logprobs(step) for step in steps]
        width = max(map(len, rows), default=1)
        padded = [row + [None] * (width - len(row)) for row in rows]
        logprobs = np.array(padded, dtype=float).reshape(len(rows), width)
    except (TypeError, ValueError) as error:
        raise WrongRow("one of its log-probabilities is no number") from error
    is_usual = logprobs <= SLACK  # not None or NaN
    for t, column in () if is_usual.all() else np.argwhere(~is_usual):
        if padded[t][column] is not None:
            value = logprobs[t, column]
            text = "NaN" if np.isnan(value) else f"{value:g}, above 0"
            raise WrongRow(f"token {t + 1} has the log-probability {text}")
    return np.where(logprobs > UNLISTED, np.minimum(logprobs, 0.0), -np.inf)


def _distinct_logprobs(step: Step) -> list[float | None]:
    """The log-probabilities of the generated token and of the other tokens listed.

    Servers may add the generated token to the k likeliest ones or list it twice: the list without
    it holds the likeliest of the others. Different tokens of one text differ in probability.
    """
    alternatives = dict.fromkeys(step.top)
    for pair in generated_entries(step):
        alternatives.pop(pair, None)
    return [step.logprob, *[logprob for _, logprob in alternatives]]


def surprisals(logprobs: np.ndarray) -> tuple[list[float] | None, str | None]:
    """-ln p of each generated token (nats); or None and the reason."""
    if not len(logprobs):
        return None, "no log-probabilities are given"
    if len(missing := np.flatnonzero(logprobs[:, 0] == -np.inf)):
        return None, f"the log-probability of token {missing[0] + 1} is not given"
    return (0.0 - logprobs[:, 0]).tolist(), None


def step_entropies(
    steps: Sequence[Step],
    logprobs: np.ndarray,
    vocabulary: int | None,
    greedy: bool,
    largest_error: float | None = None,
) -> tuple[EntropyBounds | None, str | None]:
    """Bounds of the entropy of each step; or None and the reason. Raises `WrongRow`.

    Parameters
    ----------
    steps, logprobs
        The steps and their `listed_logprobs`.
    vocabulary
        The number of tokens, if known.
    greedy
        Whether answers were decoded greedily, so that the generated token is the likeliest one.
    largest_error
        Of a log-probability, by rounding (nats); None: detected.
    """
    if not any(step.top for step in steps):
        return None, "no top log-probabilities are given"
    listed = logprobs > -np.inf
    finite, n_listed = np.where(listed, logprobs, 0.0), listed.sum(1)
    if vocabulary is not None and n_listed.max() > vocabulary:
        t = (n_listed > vocabulary).argmax()
        excess = f"{n_listed[t]} tokens are listed for token {t + 1}"
        raise WrongRow(f"{excess}, more than the vocabulary's {vocabulary}")
    if largest_error is None:
        rounding = detect_rounding(logprobs[listed])
    else:
        rounding = Rounding(largest_error)
    slack = SLACK + np.expm1(rounding.errors(finite).max(1))
    total = np.exp(logprobs).sum(1)
    if (total > 1 + slack).any():
        t = (total > 1 + slack).argmax()
        raise WrongRow(f"the probabilities listed for token {t + 1} sum to {total[t]:.4g}, above 1")
    for t, step in enumerate(steps, 1):
        if reason := _contradiction(step):
            return None, f"token {t} {reason}"
    if not n_listed.all():
        return None, f"no top log-probabilities are given for token {n_listed.argmin() + 1}"
    smallest, generated = finite.min(1), logprobs[:, 0]
    if not greedy:  # the generated token may be listed only because it was generated
        smallest_alternative = finite[:, 1:].min(1, initial=0.0)
        alone = listed[:, 0] & (generated <= smallest)
        smallest = np.where(alone, smallest_alternative, smallest)
    cap = np.where([step.merged for step in steps], 1.0, np.exp(smallest))
    return entropy_bounds(logprobs, vocabulary, cap, rounding), None


def _contradiction(step: Step) -> str | None:
    """Why the likeliest tokens of a step cannot be those of its generated token; None if they can.

    A generated token that is likelier than the least likely listed one is listed, too. Where no
    entry is known to be it, it would count twice.
    """
    if step.logprob is None or step.merged or generated_entries(step):
        return None
    listed = [logprob for _, logprob in step.top if logprob is not None and logprob > UNLISTED]
    if not listed or step.logprob <= UNLISTED:
        return None
    least = min(listed)
    if step.logprob <= least or is_same_logprob(step.logprob, least):
        return None
    return (
        f"has the log-probability {step.logprob:g}, above the least of the likeliest tokens listed "
        f"for it ({least:g}), but is not among them"
    )


def largest_top_k(steps: Sequence[Step], logprobs: np.ndarray) -> int:
    """The largest number of distinct tokens that a step lists with their log-probabilities."""
    listed = logprobs > -np.inf
    listed[:, 0] &= [bool(generated_entries(step)) for step in steps]
    return int(listed.sum(1).max())
