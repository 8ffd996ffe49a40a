"""Thresholds of cascades with a guarantee; `make validate` simulates how often one fails."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.calibration.bets import betting_test, min_groups
from tracecal.calibration.cascade_guarantee import (
    cascade_threshold_sequence,
    find_cascade_guarantee,
)
from tracecal.calibration.rated_answers import PairedAnswers, split_paired_answers

LEVEL = 0.1


def part(n, seed=0, size=1):
    """The small model is right where its probability is high, the large one nearly always."""
    draw = np.random.default_rng(seed)
    probability = draw.random(n)
    small = draw.random(n) < probability
    return PairedAnswers(np.arange(n) // size, probability, small, draw.random(n) < 0.9)


def test_what_is_lost_is_the_difference_of_the_accuracies():
    own = part(60, size=1)
    for threshold in (0.0, 0.4, 0.9, np.inf):
        cascade = np.where(own.probability >= threshold, own.small, own.large)
        at = np.array([threshold])
        assert own.loss(at, "below", 1).mean() == pytest.approx(own.large.mean() - cascade.mean())
        assert own.loss(at, "at_least", 1).mean() == pytest.approx(1 - cascade.mean())


def test_questions_count_alike_in_groups_up_to_the_most():
    own = PairedAnswers(
        np.array([0, 1, 1, 1]), np.ones(4), np.array([1, 0, 0, 1]), np.array([1, 1, 1, 1])
    )
    assert own.loss(np.array([0.5]), "below", 3)[:, 0].tolist() == pytest.approx([0, 2 / 3])
    assert own.group_weights(3).tolist() == pytest.approx([1 / 3, 1])
    assert own.loss(np.array([0.5]), "below", 1)[:, 0].tolist() == pytest.approx([0, 2 / 3])
    assert own.group_weights(1).tolist() == [1, 1]


def test_the_accuracies_are_those_of_all_questions():
    """Groups of 1 and 9, the large ones lost: .9 of the questions, half of the groups."""
    group = np.repeat(np.arange(400), np.tile([1, 9], 200))
    small = np.repeat(np.tile([True, False], 200), np.tile([1, 9], 200))
    right = np.ones(len(group), dtype=bool)
    own = PairedAnswers(group, np.full(len(group), 0.8), small, right)
    for promised in (0.6, 0.95):
        found = find_cascade_guarantee(own, own, "below", promised, LEVEL)
        assert found.small_accuracy == pytest.approx(0.1)
        assert (found.threshold is not None) == (promised > 0.9), "0.9 is lost"
    means = find_cascade_guarantee(own, own, "below", 0.6, LEVEL, largest_group=1)
    assert means.threshold == 0.8 and means.small_accuracy == pytest.approx(0.5)


def test_an_answer_without_a_probability_is_never_kept():
    """Not even where everything else is: its loss or gain is that of the large model."""
    frame = pl.DataFrame(
        {
            "example_id": [f"{place:04}" for place in range(600)],
            "rank": np.arange(600),
            "part": ["calibration", "evaluation"] * 300,
            "probability": [None if place % 3 == 0 else 0.7 for place in range(600)],
            "small": [place % 3 > 0 for place in range(600)],
            "large": np.ones(600, dtype=bool),
        }
    )
    seen, tested = split_paired_answers(frame)
    found = find_cascade_guarantee(seen, tested, "below", 0.4, LEVEL)
    assert found.threshold == 0.7, "no number stands for what has none"
    assert found.escalated == pytest.approx(1 / 3)
    assert found.accuracy == 1, "what has no probability is answered by the large model"
    nothing = frame.with_columns(probability=pl.lit(None, pl.Float64))
    none = find_cascade_guarantee(*split_paired_answers(nothing), "below", 0.4, LEVEL)
    assert (none.threshold, none.escalated) == (None, 1.0)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=60))
def test_bets_do_not_pass_before_any_could(differences):
    """Not even where nothing is lost: wealth grows by 1 / (1 - ε) with a group at most."""
    z = np.array(differences)[:, None] - 0.05
    passed = betting_test(z, np.zeros((0, 1)), 0.05, LEVEL)
    if len(z) < min_groups(0.05, LEVEL):
        assert not passed


@pytest.mark.parametrize("promised", [0.1, 0.2])
def test_equal_models_keep_everything_as_soon_as_groups_suffice(promised):
    fewest = min_groups(promised, LEVEL)
    for groups in (fewest, fewest - 1):
        right = np.ones(groups, dtype=bool)
        own = PairedAnswers(np.arange(groups), np.linspace(0, 1, groups), right, right)
        found = find_cascade_guarantee(own, own, "below", promised, LEVEL)
        if groups == fewest:
            assert (found.threshold, found.escalated) == (0.0, 0.0)
        else:
            assert found.threshold is None and f"at least {fewest}" in found.reason
            assert found.escalated == 1


@pytest.mark.parametrize(("promise", "promised"), [("below", 0.05), ("at_least", 0.8)])
def test_a_threshold_keeps_its_promise_and_tells_what_it_costs(promise, promised):
    seen, tested = part(800, 1), part(2000, 2)
    found = find_cascade_guarantee(seen, tested, promise, promised, LEVEL)
    kept = tested.probability >= found.threshold
    assert found.accuracy == pytest.approx(np.where(kept, tested.small, tested.large).mean())
    assert found.escalated == pytest.approx((~kept).mean())
    assert found.small_accuracy == pytest.approx(tested.small.mean())
    assert found.large_accuracy == pytest.approx(tested.large.mean())
    # By the truth: of those kept (0.9 - p) is lost.
    t = found.threshold
    lost = 0.9 * (1 - t) - (1 - t**2) / 2
    assert 0 < found.escalated < 1
    assert lost <= 0.05 if promise == "below" else 0.9 - lost >= 0.8
    assert found.reason is None


def test_an_accuracy_that_no_model_has_is_not_promised():
    found = find_cascade_guarantee(part(300, 1), part(600, 2), "at_least", 0.97, LEVEL)
    assert found.threshold is None and "not shown" in found.reason
    nothing = PairedAnswers(*(np.zeros(0) for _ in range(4)))
    assert "no answer" in find_cascade_guarantee(nothing, nothing, "below", 0.1, LEVEL).reason


def test_thresholds_fall_from_the_one_with_most_evidence():
    seen = part(500, 3)
    sequence = cascade_threshold_sequence(seen, "below", 0.05, 1)
    assert (np.diff(sequence) < 0).all() and sequence[-1] == seen.probability.min()
    z = seen.loss(sequence[:1], "below", 1) - 0.05
    assert z.sum() < 0
