"""Does an error rate hold that was guaranteed from labels asked for one after the other?

Labels are asked for until the search ends or a random number of them is given. The guarantee is
broken where the share of wrong ones among kept answers, of those drawn ('finite') or of the
population ('further'), is above the target; a group counts with all of its answers.

Tasks are drawn from the populations of `guarantees`, and from files that are made to mislead: the
error rate of all answers is a little above the target, and groups differ in how many answers they
keep and how many of these are wrong. Of such a file only the order is random for 'finite' answers;
for 'further' ones groups are drawn from it, with the size of its largest group as the one stated.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from simulations.claims import Claim
from simulations.guarantees import CONFIDENCE, POPULATIONS, REFERENCE, Answers, Population
from tracecal.calibration.bets import significance_level
from tracecal.labelling.sequential import (
    NoMoreLabels,
    PopulationKind,
    draw_test_order,
    search_threshold,
)


@dataclass(frozen=True)
class Kind:
    """So `many` groups of `size` answers, of which a threshold keeps `kept`, `wrong` of them wrong."""

    many: int
    size: int
    kept: int
    wrong: int


# Fewer are not enough for a first threshold that keeps none but the answers to be kept.
SAMPLE = 4
# Each file's target error rate and its kinds of groups.
FILES = {
    "200 keep 1 right of 10, 3 keep 8 wrong": (0.1, (Kind(200, 10, 1, 0), Kind(3, 10, 10, 8))),
    "400 keep 1 right of 10, 5 keep 9 wrong": (
        0.1,
        (Kind(400, 10, 1, 0), Kind(4, 10, 10, 9), Kind(1, 10, 10, 10)),
    ),
    "100 keep 1 right of 5, 3 keep 4 wrong": (0.1, (Kind(100, 5, 1, 0), Kind(3, 5, 5, 4))),
    "20 keep 10 right, 23 keep 1 wrong": (0.1, (Kind(20, 10, 10, 0), Kind(23, 10, 1, 1))),
    "wrong as a whole": (0.1, (Kind(89, 5, 5, 0), Kind(11, 5, 5, 5))),
    "one in a hundred is large and wrong": (0.1, (Kind(396, 1, 1, 0), Kind(4, 20, 20, 14))),
    "single answers, target just missed": (0.1, (Kind(359, 1, 1, 0), Kind(41, 1, 1, 1))),
}


def file_of(kinds: tuple[Kind, ...], groups: np.ndarray) -> Answers:
    """The answers of groups, each given by the place of its kind. Kept ones have score 1."""
    of = [kinds[place] for place in groups]
    size = np.array([one.size for one in of])
    group = np.repeat(np.arange(len(of)), size)
    place = np.concatenate([np.arange(one) for one in size])
    kept = place < np.array([one.kept for one in of])[group]
    wrong = (place < np.array([one.wrong for one in of])[group]) | ~kept
    return Answers(group, kept.astype(float), wrong.astype(float), wrong)


def threshold(
    drawn: Answers,
    rate: float,
    whom: PopulationKind,
    largest: int,
    most: int,
    rng: np.random.Generator,
) -> float | None:
    """The threshold that is guaranteed after at most so many labels."""
    order, seen = draw_test_order(drawn.group, whom, largest, rng), set()

    def wrong(answer: int) -> bool:
        if answer not in seen and len(seen) >= most:
            raise NoMoreLabels
        seen.add(answer)
        return bool(drawn.wrong[order][answer])

    return search_threshold(
        drawn.score[order], wrong, rate, significance_level(CONFIDENCE), whom
    ).threshold


def too_high(wrong: np.ndarray, score: np.ndarray, above: float | None, rate: float) -> bool:
    """Whether more than a share `rate` of the answers kept is wrong; `wrong` may be a risk."""
    return above is not None and wrong[score >= above].mean() > rate + 1e-12


def broken(population: Population, whom: PopulationKind, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs something is guaranteed, and in how many falsely."""
    rng = np.random.default_rng(seed)
    reference, largest = population.draw(rng, REFERENCE), max(population.sizes)
    made = false = 0
    for _ in range(runs):
        drawn = population.draw(rng, population.groups)
        most = int(rng.integers(20, len(drawn.group) + 1))
        found = threshold(drawn, population.rate, whom, largest, most, rng)
        made += found is not None
        if whom == "finite":
            false += too_high(drawn.wrong, drawn.score, found, population.rate)
        else:
            false += too_high(reference.risk, reference.score, found, population.rate)
    return made, false


def broken_in_file(name: str, whom: PopulationKind, runs: int, seed: int) -> tuple[int, int]:
    """The same of a file: its order is random, or SAMPLE times its groups are drawn from it."""
    rng = np.random.default_rng(seed)
    rate, kinds = FILES[name]
    groups = np.repeat(np.arange(len(kinds)), [one.many for one in kinds])
    file, largest = file_of(kinds, groups), max(one.size for one in kinds)
    drawn, made, false = file, 0, 0
    for _ in range(runs):
        if whom == "further":
            drawn = file_of(kinds, rng.choice(groups, SAMPLE * len(groups)))
        found = threshold(drawn, rate, whom, largest, len(drawn.group), rng)
        made += found is not None
        false += too_high(file.wrong, file.score, found, rate)
    return made, false


def claims(
    runs: int,
    populations: Mapping[str, Population] = POPULATIONS,
    files: Iterable[str] = tuple(FILES),
) -> Iterator[Claim]:
    for whom in ("finite", "further"):
        for seed, (name, population) in enumerate(populations.items()):
            yield _claim(name, whom, runs, *broken(population, whom, runs, seed))
        for seed, name in enumerate(files):
            yield _claim(name, whom, runs, *broken_in_file(name, whom, runs, seed))


def _claim(name: str, whom: PopulationKind, runs: int, made: int, false: int) -> Claim:
    claim = f"labels asked for, {whom}: {name} ({made / runs:.0%} guaranteed)"
    return Claim(claim, runs, false, 1 - CONFIDENCE)
