"""Does an error rate hold that was guaranteed from labels asked for one after the other?

Labels are asked for until the search ends or a random number of them is used up. A guarantee is
broken if the error rate of the kept answers exceeds the target: of the drawn answers ('finite') or
of the population ('further'). A group counts with all of its answers.

Tasks are drawn from the populations of `guarantees`, and from misleading files: the error rate of
all answers is a little above the target, and groups differ in how many answers they keep and how
many of these are wrong. For 'finite' answers only the order of such a file is random; for 'further'
ones groups are drawn from it, and the size of its largest group is stated.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from simulations.claims import Claim
from simulations.guarantees import (
    CONFIDENCE,
    POPULATIONS,
    REFERENCE,
    GroupPopulation,
    SimulatedAnswers,
)
from tracecal.guarantees.line import significance_level
from tracecal.guarantees.sequential import (
    NoMoreLabels,
    PopulationKind,
    draw_test_order,
    search_threshold,
)


@dataclass(frozen=True)
class GroupKind:
    """`n_groups` of `size` answers each, of which a threshold keeps `n_kept`, `n_wrong` wrong."""

    n_groups: int
    size: int
    n_kept: int
    n_wrong: int


# The groups drawn from a file, as a multiple of its own: fewer are not enough for a first threshold
# that keeps none but the answers to be kept.
SAMPLE = 4
# Each file's target error rate and its kinds of groups.
FILES = {
    "200 keep 1 right of 10, 3 keep 8 wrong": (
        0.1,
        (GroupKind(200, 10, 1, 0), GroupKind(3, 10, 10, 8)),
    ),
    "400 keep 1 right of 10, 5 keep 9 wrong": (
        0.1,
        (GroupKind(400, 10, 1, 0), GroupKind(4, 10, 10, 9), GroupKind(1, 10, 10, 10)),
    ),
    "100 keep 1 right of 5, 3 keep 4 wrong": (
        0.1,
        (GroupKind(100, 5, 1, 0), GroupKind(3, 5, 5, 4)),
    ),
    "20 keep 10 right, 23 keep 1 wrong": (
        0.1,
        (GroupKind(20, 10, 10, 0), GroupKind(23, 10, 1, 1)),
    ),
    "wrong as a whole": (0.1, (GroupKind(89, 5, 5, 0), GroupKind(11, 5, 5, 5))),
    "one in a hundred is large and wrong": (
        0.1,
        (GroupKind(396, 1, 1, 0), GroupKind(4, 20, 20, 14)),
    ),
    "single answers, target just missed": (0.1, (GroupKind(359, 1, 1, 0), GroupKind(41, 1, 1, 1))),
}


def make_file(kinds: tuple[GroupKind, ...], groups: np.ndarray) -> SimulatedAnswers:
    """Make the answers of groups, each given by the index of its kind. Kept ones have score 1."""
    group_kinds = [kinds[index] for index in groups]
    sizes = np.array([kind.size for kind in group_kinds])
    group = np.repeat(np.arange(len(group_kinds)), sizes)
    member = np.concatenate([np.arange(size) for size in sizes])
    is_kept = member < np.array([kind.n_kept for kind in group_kinds])[group]
    wrong = (member < np.array([kind.n_wrong for kind in group_kinds])[group]) | ~is_kept
    return SimulatedAnswers(group, is_kept.astype(float), wrong.astype(float), wrong)


def find_threshold(
    answers: SimulatedAnswers,
    rate: float,
    population: PopulationKind,
    max_labels: int,
    rng: np.random.Generator,
) -> float | None:
    """The threshold that is guaranteed after at most `max_labels`."""
    group = answers.group if population == "further" else np.arange(len(answers.group))
    order = draw_test_order(group, rng)
    labelled: set[int] = set()

    def is_wrong(index: int) -> bool:
        if index not in labelled and len(labelled) >= max_labels:
            raise NoMoreLabels
        labelled.add(index)
        return bool(answers.wrong[order][index])

    level = significance_level(CONFIDENCE)
    return search_threshold(answers.score[order], is_wrong, rate, level, population).threshold


def is_broken(
    wrong: np.ndarray,
    answers: SimulatedAnswers,
    threshold: float | None,
    rate: float,
    population: PopulationKind,
) -> bool:
    """Whether more than a share `rate` of the kept answers is wrong; `wrong` may be a risk.

    Of further answers each question counts once.
    """
    if threshold is None:
        return False
    sizes = np.bincount(answers.group)[answers.group]
    weight = 1 / sizes if population == "further" else np.ones(len(sizes))
    is_kept = answers.score >= threshold
    return float(np.average(wrong[is_kept], weights=weight[is_kept])) > rate + 1e-12


def count_broken(
    source: GroupPopulation, population: PopulationKind, runs: int, seed: int
) -> tuple[int, int]:
    """Count the runs with a guarantee, and those with a broken one."""
    rng = np.random.default_rng(seed)
    reference = source.draw(rng, REFERENCE)
    n_guaranteed = n_broken = 0
    for _ in range(runs):
        answers = source.draw(rng, source.groups)
        n_labels = int(rng.integers(20, len(answers.group) + 1))
        threshold = find_threshold(answers, source.rate, population, n_labels, rng)
        n_guaranteed += threshold is not None
        if population == "finite":
            n_broken += is_broken(answers.wrong, answers, threshold, source.rate, population)
        else:
            n_broken += is_broken(reference.risk, reference, threshold, source.rate, population)
    return n_guaranteed, n_broken


def count_broken_in_file(
    name: str, population: PopulationKind, runs: int, seed: int
) -> tuple[int, int]:
    """`count_broken` for a file in random order, or for SAMPLE times its groups drawn from it."""
    rng = np.random.default_rng(seed)
    rate, kinds = FILES[name]
    groups = np.repeat(np.arange(len(kinds)), [kind.n_groups for kind in kinds])
    file = make_file(kinds, groups)
    answers, n_guaranteed, n_broken = file, 0, 0
    for _ in range(runs):
        if population == "further":
            answers = make_file(kinds, rng.choice(groups, SAMPLE * len(groups)))
        n_labels = len(answers.group)
        threshold = find_threshold(answers, rate, population, n_labels, rng)
        n_guaranteed += threshold is not None
        n_broken += is_broken(file.wrong, file, threshold, rate, population)
    return n_guaranteed, n_broken


def claims(
    runs: int,
    sources: Mapping[str, GroupPopulation] = POPULATIONS,
    files: Iterable[str] = tuple(FILES),
) -> Iterator[Claim]:
    populations: tuple[PopulationKind, ...] = ("finite", "further")
    for population in populations:
        for seed, (name, source) in enumerate(sources.items()):
            counts = count_broken(source, population, runs, seed)
            yield _claim(name, population, runs, *counts)
        for seed, name in enumerate(files):
            counts = count_broken_in_file(name, population, runs, seed)
            yield _claim(name, population, runs, *counts)


def _claim(
    name: str, population: PopulationKind, runs: int, n_guaranteed: int, n_broken: int
) -> Claim:
    claim = f"labels asked for, {population}: {name} ({100 * n_guaranteed / runs:.0f} % guaranteed)"
    return Claim(claim, runs, n_broken, 1 - CONFIDENCE)
