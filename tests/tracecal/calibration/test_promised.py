"""What labels could promise, by simulation: the populations drawn from, and the number needed."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from tracecal.calibration import planning
from tracecal.calibration.guarantees import Part, sufficing
from tracecal.calibration.planning import AtHand, Guessed
from tracecal.errors import InputError

SETTINGS = {"draws": 5, "confidence": 0.9, "share": 0.35, "seed": 1}


def test_a_guess_draws_answers_of_its_accuracy_and_auroc_with_exact_probabilities():
    part = Guessed(0.7, 0.85).draw(np.random.default_rng(0), 100_000)
    assert part.correct.mean() == pytest.approx(0.7, abs=0.005)
    assert roc_auc_score(part.correct, part.probability) == pytest.approx(0.85, abs=0.005)
    for low in np.arange(0.05, 0.95, 0.1):
        own = (part.probability >= low) & (part.probability < low + 0.1)
        assert part.correct[own].mean() == pytest.approx(part.probability[own].mean(), abs=0.02)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 30), st.integers(0, 9))
def test_groups_at_hand_are_drawn_whole(sizes, groups, seed):
    """Each answer's probability says which group it is of, and which of its answers."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(group))  # a file's answers come in any order
    within = np.concatenate([np.arange(size) for size in sizes])
    told = (group + within / 10)[order]
    drawn = AtHand(Part(group[order], told, told > 1)).draw(rng, groups)
    assert drawn.groups == groups
    for number in range(groups):
        values = np.sort(drawn.probability[drawn.group == number])
        first = int(values[0])
        assert np.allclose(values, first + np.arange(sizes[first]) / 10)
    assert (drawn.correct == (drawn.probability > 1)).all()


def certain(n, correct):
    return AtHand(Part(np.arange(n), np.linspace(0.1, 0.9, n), np.full(n, correct)))


def test_right_answers_are_promised_from_the_number_that_suffices_on():
    """A third calibrates; the others must hold as many as suffice where none is wrong."""
    enough = sufficing(0.1, 0.1)
    few, many = int(enough / 0.65) - 2, 4 * enough
    drawn = planning.simulated(certain(40, True), [few, many], error_rate=0.1, **SETTINGS)
    summary = planning.summarised(drawn)
    assert summary["promised"].to_list() == [0, 1]
    assert summary["median"].to_list() == [0, 1]


def test_wrong_answers_are_never_promised():
    row, tried = planning.needed(certain(40, False), 40, 160, error_rate=0.1, **SETTINGS)
    assert row is None and tried == 160
    assert "Even 160 labelled questions" in planning.sentence(row, 0.1, tried)


def test_what_is_needed_is_the_first_number_that_suffices_often_enough():
    row, tried = planning.needed(certain(40, True), 10, 1000, error_rate=0.1, **SETTINGS)
    assert row["questions"] == tried < 100
    before = planning.simulated(certain(40, True), [tried // 2], error_rate=0.1, **SETTINGS)
    assert (before["coverage"] > 0).mean() < planning.POWER
    assert f"About {tried} labelled questions" in planning.sentence(row, 0.1, tried)


def test_draws_depend_on_the_seed_alone():
    population = Guessed(0.8, 0.9)
    first, second = (
        planning.simulated(population, sizes, error_rate=0.2, **SETTINGS)
        for sizes in ([50, 100], [100])
    )
    assert first.filter(pl.col("questions") == 100).equals(second)


@pytest.mark.parametrize("accuracy, auroc", [(0, 0.8), (1, 0.8), (0.5, 0.5), (0.5, 1)])
def test_guesses_out_of_range_are_refused(accuracy, auroc):
    with pytest.raises(InputError, match="is not between"):
        Guessed(accuracy, auroc)
