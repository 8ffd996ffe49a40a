"""A promised error rate from labels that are asked for one after the other, where they decide.

Given are answers with scores and groups, and labels that can be asked for. The promise: with the
stated confidence, the error rate of the answers whose score reaches the certified threshold is at
most r. It is that of a random answer of a random group, given that it is kept; where groups are
single answers, the share of wrong ones among those kept. It is about one of two populations:

- 'finite', the answers given,
- 'further', answers like them: the groups given are a random sample.

The method, after BARGAIN (Zeighami et al. 2026): thresholds are tested in a fixed order, falling,
each at the full level delta, until one does not pass (fixed-sequence testing, see `risk_control`).
A threshold is tested by betting on groups in a random order, without replacement. For group g let
x_g = w + r (1 - c), with c the share of its answers that the threshold keeps and w that of those
kept and wrong. The hypothesis H(t) says that the mean of x over the N groups with a kept answer is
above r. After k of them, of sum S, the next one's expectation is then above m = (N r - S) / (N - k)
('finite'; for 'further' answers m = r). A wealth of 1 is multiplied by 1 - b (x - m), with b >= 0
chosen before the group is seen and so small that wealth stays positive. Under H(t) it is a
supermartingale and reaches 1 / delta with a probability of at most delta (Ville's inequality;
Waudby-Smith and Ramdas 2024), whatever made one look. All thresholds use one
random order of the groups, so that a label serves several; a test takes the groups in that order
and bets by those before, so that it is one and the same test whenever the labels were asked for.

- The first threshold keeps a share START of the answers and each following one STEP more: fewer
  tests find the coverage less exactly, but each costs labels.
- Thresholds for 'further' answers are quantiles of a few groups that are set aside, so that those
  labelled are a random sample, given the thresholds.
- b is that of a likelihood ratio of the error rate seen so far against m, and begins as if PRIOR
  groups before had GUESS times the target error rate. Where a threshold keeps parts of groups it
  is larger, as x varies less: by their mean square share.

The four numbers were chosen by simulation on the tasks of `benchmarks/labels.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Population = Literal["finite", "further"]
START, STEP = 0.08, 0.04
GUESS, PRIOR = 0.4, 20.0
# The share of groups set aside for thresholds.
ASIDE = 0.1


@dataclass(frozen=True)
class Pool:
    """Answers: arrays [answers]. Groups are numbered from 0, in random order."""

    group: np.ndarray
    score: np.ndarray


@dataclass(frozen=True)
class Promise:
    """The last threshold that passed, null where none did, and the share of answers it keeps.

    `ended` is why no further threshold passed, `tested` the last one that was tested.
    """

    threshold: float | None
    coverage: float
    tested: float | None
    ended: Literal["passed", "failed", "labels"]


class NoMoreLabels(Exception):
    """A label is needed and cannot be had."""


def promise(
    pool: Pool,
    wrong: Callable[[int], bool],
    error_rate: float,
    level: float,
    population: Population,
) -> Promise:
    """The most inclusive threshold that passes.

    `wrong` says whether an answer is wrong; it is called for those that a test needs, in the order
    in which it needs them, and may raise `NoMoreLabels`.
    """
    groups = int(pool.group.max()) + 1
    aside = math.ceil(ASIDE * groups) if population == "further" else 0
    drawn = pool.group >= aside
    thresholds = _thresholds(pool.score[~drawn] if aside else pool.score)
    thresholds = thresholds[thresholds <= pool.score[drawn].max(initial=-np.inf)]
    sizes = np.bincount(pool.group)
    passed = tested = None
    ended: Literal["passed", "failed", "labels"] = "passed"
    for tested in thresholds:
        kept = np.flatnonzero((pool.score >= tested) & drawn)
        try:
            passes = _passes(
                _tested_groups(pool.group[kept], kept, sizes), wrong, error_rate, level, population
            )
        except NoMoreLabels:
            ended = "labels"
            break
        if not passes:
            ended = "failed"
            break
        passed = tested
    coverage = float((pool.score >= passed).mean()) if passed is not None else 0.0
    return Promise(
        None if passed is None else float(passed),
        coverage,
        None if tested is None else float(tested),
        ended,
    )


def _thresholds(scores: np.ndarray) -> np.ndarray:
    """Quantiles of the scores, falling, that keep shares of START, START + STEP and so on to 1.

    Answers without a score have minus infinity; no threshold keeps them.
    """
    ranked = np.sort(scores)[::-1]
    shares = np.append(np.arange(START, 1.0, STEP), 1.0)
    found = np.unique(ranked[np.ceil(shares * len(ranked)).astype(int) - 1])[::-1]
    return found[np.isfinite(found)]


@dataclass(frozen=True)
class _Group:
    """The kept answers of a group, and their share of it."""

    answers: np.ndarray
    share: float


def _tested_groups(group: np.ndarray, kept: np.ndarray, sizes: np.ndarray) -> list[_Group]:
    """The groups with kept answers, in their order; `group` [kept answers] is theirs."""
    order = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[order], return_index=True)
    parts = np.split(kept[order], starts[1:])
    return [
        _Group(answers, len(answers) / sizes[number])
        for number, answers in zip(numbers, parts, strict=True)
    ]


def _passes(
    groups: list[_Group],
    wrong: Callable[[int], bool],
    rate: float,
    level: float,
    population: Population,
) -> bool:
    """Whether wealth reaches 1 / level, or it is known that the rate is kept."""
    n = len(groups)
    shares = np.array([group.share for group in groups])
    mean_share, scale = (shares.mean(), (shares**2).mean()) if n else (1.0, 1.0)
    before = PRIOR * rate * (1 - mean_share * (1 - GUESS))  # of x, where the error rate is GUESS r
    total, wealth = 0.0, 1.0
    for k, group in enumerate(groups):
        m = (n * rate - total) / (n - k) if population == "finite" else rate
        most = group.share + rate * (1 - group.share)
        if m >= 1:
            return True  # were all others wrong, it would be kept
        if m <= 0:
            return False  # the errors known are too many already
        guess = (before + total) / (PRIOR + k)
        bet = max(m - guess, 0.0) / (scale * m * (1 - m))
        wrongs = sum(bool(wrong(int(answer))) for answer in group.answers)
        x = group.share * wrongs / len(group.answers) + rate * (1 - group.share)
        wealth *= 1 - min(bet, 1 / max(most - m, 1e-12)) * (x - m)
        total += x
        if wealth >= 1 / level:
            return True
    return population == "finite" and n > 0 and total <= n * rate
