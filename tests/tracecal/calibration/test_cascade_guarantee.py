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
    answers = part(60, size=1)
    for threshold in (0.0, 0.4, 0.9, np.inf):
        cascade = np.where(answers.probability >= threshold, answers.small, answers.large)
        thresholds = np.array([threshold])
        assert answers.loss(thresholds, "below", 1).mean() == pytest.approx(
            answers.large.mean() - cascade.mean()
        )
        assert answers.loss(thresholds, "at_least", 1).mean() == pytest.approx(1 - cascade.mean())


def test_questions_count_alike_in_groups_up_to_the_most():
    answers = PairedAnswers(
        np.array([0, 1, 1, 1]), np.ones(4), np.array([1, 0, 0, 1]), np.array([1, 1, 1, 1])
    )
    assert answers.loss(np.array([0.5]), "below", 3)[:, 0].tolist() == pytest.approx([0, 2 / 3])
    assert answers.group_weights(3).tolist() == pytest.approx([1 / 3, 1])
    assert answers.loss(np.array([0.5]), "below", 1)[:, 0].tolist() == pytest.approx([0, 2 / 3])
    assert answers.group_weights(1).tolist() == [1, 1]


def test_the_accuracies_are_those_of_all_questions():
    """Groups of 1 and 9, the large ones lost: .9 of the questions, half of the groups."""
    group = np.repeat(np.arange(400), np.tile([1, 9], 200))
    small = np.repeat(np.tile([True, False], 200), np.tile([1, 9], 200))
    right = np.ones(len(group), dtype=bool)
    answers = PairedAnswers(group, np.full(len(group), 0.8), small, right)
    for target in (0.6, 0.95):
        guarantee = find_cascade_guarantee(answers, answers, "below", target, LEVEL)
        assert guarantee.small_accuracy == pytest.approx(0.1)
        assert (guarantee.threshold is not None) == (target > 0.9), "0.9 is lost"
    means = find_cascade_guarantee(answers, answers, "below", 0.6, LEVEL, largest_group=1)
    assert means.threshold == 0.8 and means.small_accuracy == pytest.approx(0.5)


def test_an_answer_without_a_probability_is_never_kept():
    """Not even where everything else is: its loss or gain is that of the large model."""
    frame = pl.DataFrame(
        {
            "example_id": [f"{number:04}" for number in range(600)],
            "rank": np.arange(600),
            "part": ["calibration", "evaluation"] * 300,
            "probability": [None if number % 3 == 0 else 0.7 for number in range(600)],
            "small": [number % 3 > 0 for number in range(600)],
            "large": np.ones(600, dtype=bool),
        }
    )
    calibration, evaluation = split_paired_answers(frame)
    guarantee = find_cascade_guarantee(calibration, evaluation, "below", 0.4, LEVEL)
    assert guarantee.threshold == 0.7, "no number stands for what has none"
    assert guarantee.escalated == pytest.approx(1 / 3)
    assert guarantee.accuracy == 1, "what has no probability is answered by the large model"
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


@pytest.mark.parametrize("target", [0.1, 0.2])
def test_equal_models_keep_everything_as_soon_as_groups_suffice(target):
    needed = min_groups(target, LEVEL)
    for groups in (needed, needed - 1):
        right = np.ones(groups, dtype=bool)
        answers = PairedAnswers(np.arange(groups), np.linspace(0, 1, groups), right, right)
        guarantee = find_cascade_guarantee(answers, answers, "below", target, LEVEL)
        if groups == needed:
            assert (guarantee.threshold, guarantee.escalated) == (0.0, 0.0)
        else:
            assert guarantee.threshold is None and f"at least {needed}" in guarantee.reason
            assert guarantee.escalated == 1


@pytest.mark.parametrize(("bound", "target"), [("below", 0.05), ("at_least", 0.8)])
def test_a_threshold_keeps_its_promise_and_tells_what_it_costs(bound, target):
    calibration, evaluation = part(800, 1), part(2000, 2)
    guarantee = find_cascade_guarantee(calibration, evaluation, bound, target, LEVEL)
    is_kept = evaluation.probability >= guarantee.threshold
    assert guarantee.accuracy == pytest.approx(
        np.where(is_kept, evaluation.small, evaluation.large).mean()
    )
    assert guarantee.escalated == pytest.approx((~is_kept).mean())
    assert guarantee.small_accuracy == pytest.approx(evaluation.small.mean())
    assert guarantee.large_accuracy == pytest.approx(evaluation.large.mean())
    # By the truth: of those kept (0.9 - p) is lost.
    threshold = guarantee.threshold
    loss = 0.9 * (1 - threshold) - (1 - threshold**2) / 2
    assert 0 < guarantee.escalated < 1
    assert loss <= 0.05 if bound == "below" else 0.9 - loss >= 0.8
    assert guarantee.reason is None


def test_an_accuracy_that_no_model_has_is_not_promised():
    guarantee = find_cascade_guarantee(part(300, 1), part(600, 2), "at_least", 0.97, LEVEL)
    assert guarantee.threshold is None and "not shown" in guarantee.reason
    nothing = PairedAnswers(*(np.zeros(0) for _ in range(4)))
    assert "no answer" in find_cascade_guarantee(nothing, nothing, "below", 0.1, LEVEL).reason


def test_thresholds_fall_from_the_one_with_most_evidence():
    calibration = part(500, 3)
    sequence = cascade_threshold_sequence(calibration, "below", 0.05, 1)
    assert (np.diff(sequence) < 0).all() and sequence[-1] == calibration.probability.min()
    z = calibration.loss(sequence[:1], "below", 1) - 0.05
    assert z.sum() < 0
