"""Thresholds with a guarantee: the arithmetic of the tests. `make validate` simulates guarantees."""

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.stats import binomtest

from support.grouped_answers import answers, logistic, make_split
from tracecal.calibration.bets import Evidence, betting_test
from tracecal.calibration.estimator_fits import Coefficients
from tracecal.calibration.fits import Constant, Identity, Isotonic, as_json, fit
from tracecal.calibration.guarantee import (
    find_guarantee,
    find_guarantees,
    threshold_sequence,
)
from tracecal.calibration.guarantees.sequence import START
from tracecal.calibration.rated_answers import LabelledAnswers, split_answers
from tracecal.calibration.risk_control import control_risk, explain_failure, groups_needed
from tracecal.calibration.splits import make_splits

LEVEL = 0.1


def single(probability, correct):
    """A part whose groups are single answers."""
    return LabelledAnswers(
        np.arange(len(probability)), np.asarray(probability), np.asarray(correct)
    )


def evidence(kept, wrong, n):
    """Of n single answers the first `kept` are kept and the first `wrong` wrong, at one threshold."""
    index = np.arange(n)[:, None]
    return Evidence((index < kept) * 1.0, (index < wrong) * 1.0, np.zeros((0, 1)), ungrouped=True)


@settings(max_examples=200)
@given(
    kept=st.integers(0, 300),
    share=st.floats(0, 1),
    rate=st.floats(0.001, 0.999),
    level=st.floats(0.001, 0.5),
)
def test_single_answers_are_tested_as_scipys_binomial_test_does(kept, share, rate, level):
    wrong = int(share * kept)
    p = binomtest(wrong, kept, rate, "less").pvalue if kept else 1.0
    if abs(p - level) > 1e-9:
        assert evidence(kept, wrong, 310).passes(rate, level) == (p < level)


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3])
def test_bets_on_groups_that_are_never_wrong_need_what_the_binomial_test_needs(rate):
    need = math.ceil(math.log(LEVEL) / math.log(1 - rate))
    for kept in (need, need - 1):
        z = np.full((kept, 1), -rate)
        assert betting_test(z, np.full((20, 1), -rate), rate, LEVEL) == (kept == need)


@given(
    shares=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40),
    rate=st.sampled_from([0.05, 0.2, 0.5]),
)
def test_bets_are_made_before_their_group_is_seen_and_wealth_follows_them_by_hand(shares, rate):
    kept = np.array([max(pair) for pair in shares]) / 4
    wrong = np.array([min(pair) for pair in shares]) / 4
    z = wrong - rate * kept
    # The same bets one by one, with the standard library's normal distribution.
    from statistics import NormalDist

    normal, wealth, calibration = NormalDist(), 1.0, [(1 - rate) ** 2]
    for index, part_answers in enumerate(z):
        if LEVEL * wealth >= 1 - 1e-12:
            break
        inside = max(LEVEL * wealth, 1e-12)
        drift = normal.pdf(normal.inv_cdf(inside)) / inside
        bet = drift / math.sqrt((len(z) - index) * sum(calibration) / len(calibration))
        wealth *= max(1 - min(bet, 1 / (1 - rate)) * part_answers, 0.0)
        calibration.append(part_answers**2)
    assert betting_test(z[:, None], np.zeros((0, 1)), rate, LEVEL) == (LEVEL * wealth >= 1 - 1e-12)


@pytest.mark.parametrize(("rate", "share"), [(0.3, 1.0), (0.3, 0.4), (0.1, 1.0)])
def test_bets_against_what_is_true_win_in_at_most_the_level(rate, share):
    rng = np.random.default_rng(5)
    runs, groups = 20_000, 60
    kept = rng.random((groups, runs)) < share
    wrong = kept & (rng.random((groups, runs)) < rate)
    won = betting_test(wrong - rate * kept, np.zeros((0, runs)), rate, LEVEL).mean()
    assert 0.2 * LEVEL < won <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def test_bets_find_more_than_one_answer_of_each_group_would():
    """With groups of four that are little alike: three times as often, here."""
    rng = np.random.default_rng(6)
    runs, groups, rate = 400, 65, 0.2
    wrong = rng.random((groups, runs, 4)) < 0.13
    whole = betting_test(wrong.mean(axis=2) - rate, np.zeros((0, runs)), rate, LEVEL).mean()
    item = np.array(
        [binomtest(int(k), groups, rate, "less").pvalue <= LEVEL for k in wrong[:, :, 0].sum(0)]
    ).mean()
    assert whole > item + 0.2


def test_a_group_counts_with_its_answers_up_to_the_most():
    group = np.array([0, 0, 0, 1, 2, 2])
    probability = np.array([0.9, 0.1, 0.9, 0.9, 0.1, 0.1])
    part = LabelledAnswers(group, probability, np.array([True, False, False, False, True, True]))
    threshold = np.array([0.5])
    assert (part.n_groups, part.largest_group) == (3, 3)
    assert part.kept_weight(threshold, 3).ravel().tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert part.wrong_weight(threshold, 3).ravel().tolist() == pytest.approx([1 / 3, 1 / 3, 0])
    assert part.group_weights(3).tolist() == pytest.approx([1, 1 / 3, 2 / 3])
    # As if no group had more than two.
    assert part.kept_weight(threshold, 2).ravel().tolist() == pytest.approx([2 / 3, 1 / 2, 0])
    assert part.group_weights(2).tolist() == pytest.approx([1, 1 / 2, 1])


def control_frame(frame, seed=0, rates=(0.3,), confidence=0.9):
    return control_risk(logistic(), frame, make_split(frame, seed), rates, confidence)


def test_every_answer_of_the_evaluation_part_is_tested_and_no_group_was_seen():
    frame = answers(np.random.default_rng(3), 60, 3, 0.2)
    split = make_split(frame)
    calibrator = logistic().splits[0]
    calibration, evaluation = split_answers(calibrator, ["a", "b"], frame, split)
    assert not set(calibration.group) & set(evaluation.group)
    assert len(evaluation.probability) == split.filter(part="evaluation").height
    assert evaluation.n_groups == len(evaluation.probability) / 3 == control_frame(frame)["groups"]


@settings(max_examples=50)
@given(
    calibration=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    n=st.integers(0, 500),
    rate=st.sampled_from([0.01, 0.05, 0.3, 0.9]),
)
def test_thresholds_fall_to_the_lowest_and_the_first_keeps_more_than_suffices(calibration, n, rate):
    part = single(calibration, np.ones(len(calibration), dtype=bool))
    thresholds = threshold_sequence(part, n, rate, LEVEL)
    assert set(thresholds) <= set(calibration)
    assert (np.diff(thresholds) < 0).all()
    assert thresholds[-1] == min(calibration)
    suffice = next(k for k in range(1, 1000) if (1 - rate) ** k <= LEVEL)
    first = np.mean(np.array(calibration) >= thresholds[0])
    assert first >= min(START * suffice / max(n, 1), 1) - 1e-9


def test_every_number_of_groups_has_a_sequence():
    """However the steps from the first share to 1 are rounded."""
    part = single(np.linspace(0, 1, 40), np.ones(40, dtype=bool))
    for groups in range(1, 400):
        for rate in (0.05, 0.1, 0.2, 0.3):
            assert threshold_sequence(part, groups, rate, LEVEL)[-1] == 0


def test_the_sizes_of_tested_groups_choose_no_threshold(monkeypatch):
    """Sizes may go with errors. As many groups, of one answer or of five, are tested alike."""
    rng, sequences, of = np.random.default_rng(8), [], Evidence.from_answers
    follow = staticmethod(lambda *given: sequences.append(given[2]) or of(*given))
    monkeypatch.setattr(Evidence, "from_answers", follow)

    def sized(sizes):
        probability = rng.random(sum(sizes))
        group = np.repeat(np.arange(len(sizes)), sizes)
        return LabelledAnswers(group, probability, probability > 0.75)

    calibration = sized([1, 5] * 45)
    for evaluation in (sized([1] * 60), sized([5] * 60)):
        find_guarantee(calibration, evaluation, 0.3, LEVEL)
    assert len(sequences[0]) > 20 and np.array_equal(*sequences)
    # Sixty groups that weigh (1/5 + 1) / 2 each begin where 36 single ones do.
    begin = {groups: threshold_sequence(calibration, groups, 0.3, LEVEL)[0] for groups in (36, 60)}
    assert sequences[0][0] == begin[36] < begin[60]


def test_the_sequence_begins_where_the_calibration_labels_say_most():
    calibration = np.repeat([0.95, 0.9, 0.4], [10, 40, 50])
    wrong = np.zeros(100, dtype=bool)
    wrong[[12, 20, 30]] = True
    wrong[60:] = True
    # Errors of 0 of 10, 3 of 50 or 43 of 100: the second speaks loudest against 0.3.
    assert threshold_sequence(single(calibration, ~wrong), 260, 0.3, LEVEL).tolist() == [0.9, 0.4]
    # With none below the target, the lowest error rate comes first.
    lowest = single(calibration, np.arange(100) >= 80)
    assert threshold_sequence(lowest, 260, 0.3, LEVEL).tolist() == [0.4]


def test_a_fit_that_saturates_below_the_target_is_certified_by_its_labels():
    """The fit says at most 0.9, so that 5 % never looks reachable, but the upper half is right."""
    draw = np.random.default_rng(8)

    def part(n):
        best = draw.random(n) < 0.5
        right = draw.random(n) < np.where(best, 0.99, 0.5)
        return single(np.where(best, 0.9 - 0.01 * draw.random(n), 0.5 * draw.random(n)), right)

    guarantee = find_guarantee(part(3000), part(5000), 0.05, LEVEL, ungrouped=True)
    assert guarantee.threshold is not None
    assert guarantee.coverage > 0.4 and guarantee.error < 0.05


def test_the_test_follows_the_declared_groups_and_not_those_that_happen_to_be_tested():
    calibration = single(np.full(60, 0.9), np.ones(60, dtype=bool))
    evaluation = single(np.full(40, 0.9), np.arange(40) >= 3)
    exact = find_guarantee(calibration, evaluation, 0.2, LEVEL, ungrouped=True)
    bets = find_guarantee(calibration, evaluation, 0.2, LEVEL)
    assert exact.threshold == 0.9, "P(Bin(40, 0.2) <= 3) = 0.028"
    evidence_at = Evidence.from_answers(
        calibration, evaluation, np.array([0.9]), 0.2, ungrouped=False, largest_group=1
    )
    z = evaluation.wrong_weight(np.array([0.9]), 1) - 0.2 * evaluation.kept_weight(
        np.array([0.9]), 1
    )
    assert evidence_at.passes(0.2, LEVEL) == betting_test(
        z, evidence_at.calibration_excess, 0.2, LEVEL
    )
    assert (bets.threshold is None) == (not evidence_at.passes(0.2, LEVEL)[0])


def test_why_there_is_no_guarantee_is_said():
    calibration = single(np.full(50, 0.9), np.ones(50, dtype=bool))
    small_part, wrong = single(np.full(8, 0.9), np.ones(8, dtype=bool)), np.arange(40) % 4 > 0
    assert explain_failure(calibration, small_part, 0.2, LEVEL, 11) == (
        "needs at least 11 tested groups even if every answer is correct, has 8"
    )
    assert explain_failure(calibration, single(np.full(40, 0.9), wrong), 0.2, LEVEL, None) == (
        "10 of the 40 most confident answers tested first are incorrect, too many for an error "
        "rate of 0.2"
    )
    eighth = single(np.full(40, 0.9), np.arange(40) % 8 > 0)
    assert explain_failure(calibration, eighth, 0.2, LEVEL, 60).endswith(
        "too few answers to tell; if more groups are like these, 60 will do"
    )
    empty = single(np.array([]), np.array([], dtype=bool))
    assert explain_failure(calibration, empty, 0.2, LEVEL, None) == "no answer has been tested"


@pytest.mark.parametrize("size", [1, 4])
def test_equal_groups_are_tested_by_their_means(size):
    """Every number is that of means within groups, computed here by reshaping."""
    draw = np.random.default_rng(size)

    def part(groups):
        probability = draw.random(groups * size)
        return LabelledAnswers(
            np.repeat(np.arange(groups), size),
            probability,
            draw.random(groups * size) < 0.5 + probability / 2,
        )

    calibration, evaluation = part(80), part(150)
    guarantee = find_guarantee(calibration, evaluation, 0.3, LEVEL)
    thresholds = threshold_sequence(calibration, 150, 0.3, LEVEL)

    def means(part_answers, wrong):
        kept = (part_answers.probability[:, None] >= thresholds) & (
            ~part_answers.correct[:, None] | (not wrong)
        )
        return kept.reshape(-1, size, len(thresholds)).sum(axis=1) / size

    kept, wrong = means(evaluation, False), means(evaluation, True)
    z = wrong - 0.3 * kept
    passed = betting_test(z, means(calibration, True) - 0.3 * means(calibration, False), 0.3, LEVEL)
    last = np.flatnonzero(np.cumprod(passed))[-1]
    assert guarantee.threshold == thresholds[last]
    assert guarantee.coverage == kept[:, last].mean()
    assert guarantee.error == wrong[:, last].sum() / kept[:, last].sum()


def unequal(groups, large_wrong):
    """Half of the groups have one answer, all right, and half five: each (5 k)th is all wrong."""
    group = np.concatenate([np.repeat([2 * k, 2 * k + 1], [1, 5]) for k in range(groups)])
    wrong = np.isin(group, [2 * k + 1 for k in range(groups) if k % 5 < large_wrong])
    return LabelledAnswers(group, np.full(len(group), 0.9), ~wrong)


def test_what_is_promised_is_the_share_of_all_kept_answers_that_is_wrong():
    """A fifth of the large groups is wrong: .167 of the answers, though .1 of a mean group."""
    part = unequal(600, 1)
    assert (~part.correct).mean() == pytest.approx(1 / 6)
    assert find_guarantee(part, part, 0.15, LEVEL).threshold is None
    guarantee = find_guarantee(part, part, 0.2, LEVEL)
    assert (guarantee.threshold, guarantee.error) == (0.9, pytest.approx(1 / 6))
    # Counted with one answer each, the groups are as many as they are.
    counted_once = find_guarantee(part, part, 0.15, LEVEL, largest_group=1)
    assert (counted_once.threshold, counted_once.error) == (0.9, pytest.approx(0.1))


def test_few_large_groups_decide_and_that_is_said():
    draw = np.random.default_rng(9)
    size = np.where(np.arange(40) == 20, 30, 1)
    group = np.repeat(np.arange(40), size)
    part = LabelledAnswers(group, draw.random(len(group)), np.ones(len(group), dtype=bool))
    assert find_guarantee(part, part, 0.2, LEVEL).threshold is None
    assert explain_failure(part, part, 0.2, LEVEL, None, 30) == (
        "needs about 11 tested groups of 30 answers even if every answer is correct; the 40 tested "
        "ones, most of them smaller, count as 2.3: label more, or state a smaller "
        "risk_control.largest_group"
    )
    assert find_guarantee(part, part, 0.2, LEVEL, largest_group=1).threshold is not None


def test_a_laxer_rate_has_at_least_the_threshold_of_a_stricter_one():
    """At .1 the best answers pass; at .3 the sequence begins with others, which do not."""
    probability = np.repeat([0.9, 0.5], [60, 120])
    calibration = single(probability, np.arange(180) < 165)
    evaluation = single(probability, np.arange(180) < 60)
    strict, lax = (
        find_guarantee(calibration, evaluation, rate, LEVEL, True) for rate in (0.1, 0.3)
    )
    assert strict.threshold == 0.9 and lax.threshold is None, "what this test needs"
    guarantees = find_guarantees(calibration, evaluation, (0.3, 0.1), LEVEL, True)
    assert [item.error_rate for item in guarantees] == [0.1, 0.3]
    assert [item.threshold for item in guarantees] == [0.9, 0.9]
    assert [item.tested_rate for item in guarantees] == [0.1, 0.1]
    assert find_guarantees(calibration, evaluation, (0.3,), LEVEL, True)[0].threshold is None


def test_the_first_split_has_the_guarantees():
    frame = answers(np.random.default_rng(7), 300, 1, 0.1)
    splits = make_splits(frame.select("example_id", "group_id"), "task", 0, 4, 0.35)
    fits = logistic(n_splits=4)
    controls = [
        control_risk(fits, frame, splits.filter(pl.col("split") >= number), (0.2,), 0.9, True)
        for number in range(4)
    ]
    assert [control["split"] for control in controls] == [0, 1, 2, 3]
    first = control_risk(fits, frame, splits.filter(split=0), (0.2,), 0.9, ungrouped=True)
    assert controls[0] == first != controls[1] | {"split": 0}


def test_what_cannot_be_certified_is_none_and_what_is_always_right_is_kept_whole():
    calibration = single(np.linspace(0, 1, 101), np.ones(101, dtype=bool))
    scores = np.linspace(0.01, 1, 100)
    missing = find_guarantee(
        calibration, single(scores, np.zeros(100, dtype=bool)), 0.2, LEVEL, ungrouped=True
    )
    assert (missing.threshold, missing.n, missing.kept, missing.wrong) == (None, 100, 0, 0)
    right = find_guarantee(
        calibration, single(scores, np.ones(100, dtype=bool)), 0.2, LEVEL, ungrouped=True
    )
    assert (right.threshold, right.n, right.kept, right.wrong) == (0.0, 100, 100, 0)
    assert (right.coverage, right.error) == (1.0, 0.0)
    small_part = single(scores[:10], np.ones(10, dtype=bool))
    assert find_guarantee(calibration, small_part, 0.2, LEVEL, ungrouped=True).threshold is None
    assert (
        find_guarantee(
            calibration, single(scores[:11], np.ones(11, dtype=bool)), 0.2, LEVEL, ungrouped=True
        ).threshold
        == 0.0
    )
    empty = single(np.array([]), np.array([], dtype=bool))
    assert find_guarantee(calibration, empty, 0.2, LEVEL, ungrouped=True).threshold is None
    assert find_guarantee(empty, small_part, 0.2, LEVEL, ungrouped=True).threshold is None
    assert groups_needed(empty, small_part, 0.2, LEVEL, ungrouped=True) is None


def test_enough_is_how_many_like_these_would_have_passed():
    calibration = single(np.full(50, 0.9), np.ones(50, dtype=bool))
    small_part = single(np.full(8, 0.9), np.ones(8, dtype=bool))
    assert groups_needed(calibration, small_part, 0.2, LEVEL, ungrouped=True) in (
        11,
        12,
        13,
    )  # 11 suffice where none is wrong
    wrong = single(np.full(40, 0.9), np.arange(40) % 4 > 0)
    assert (
        groups_needed(calibration, wrong, 0.2, LEVEL, ungrouped=True) is None
    )  # one in four is wrong
    half = single(np.full(40, 0.9), np.arange(40) % 8 > 0)
    needed = groups_needed(calibration, half, 0.2, LEVEL, ungrouped=True)
    assert 40 < needed < 100
    assert binomtest(5, 40, 0.2, "less").pvalue > LEVEL
    assert binomtest(math.ceil(needed / 8), needed, 0.2, "less").pvalue <= LEVEL


def test_a_user_can_apply_the_json_by_hand():
    rng = np.random.default_rng(4)
    frame = answers(rng, 300, 1, 0.5).with_columns(
        correct=pl.Series(rng.random(300)) < 1 / (1 + (-3 * pl.col("a")).exp())
    )
    split = make_split(frame)
    stored = json.loads(json.dumps(control_frame(frame, rates=(0.1, 0.2, 0.3))))
    assert (stored["split"], stored["confidence"]) == (0, 0.9)
    evaluated = frame.join(split.filter(part="evaluation"), on="example_id")
    fits = logistic()
    fit = fits.splits[0]
    z = fit.intercept + sum(
        w * (evaluated[f] - m) / s
        for f, m, s, w in zip(fits.features, fit.means, fit.scales, fit.weights, strict=True)
    )
    probability = 1 / (1 + (-z).exp())
    assert [item["error_rate"] for item in stored["thresholds"]] == [0.1, 0.2, 0.3]
    assert stored["thresholds"][2]["threshold"] is not None
    for item in stored["thresholds"]:
        bar = 2 if item["threshold"] is None else item["threshold"]
        kept = evaluated.filter(probability >= bar)
        assert (item["n"], item["kept"]) == (195, kept.height)
        assert item["wrong"] == (~kept["correct"]).sum()
        # Single answers: what is guaranteed is estimated by plain shares.
        assert item["coverage"] == pytest.approx(kept.height / 195)
        if item["threshold"] is not None:
            assert item["error"] == pytest.approx(item["wrong"] / item["kept"])
            assert item["enough"] is None


def test_row_order_changes_nothing_and_null_features_are_left_out():
    frame = answers(np.random.default_rng(5), 200, 2, 0.05)
    plain = control_frame(frame)
    assert control_frame(frame.sample(fraction=1, shuffle=True, seed=1)) == plain
    assert plain["thresholds"][0]["threshold"] is not None
    holed = frame.with_columns(b=pl.when(pl.int_range(pl.len()) % 4 > 0).then("b"))
    assert 0 < control_frame(holed)["thresholds"][0]["n"] < 200


@pytest.mark.parametrize(
    "calibrator",
    [
        Constant(0.3),
        Identity(),
        Isotonic([0.0, 1.0], [0.1, 0.9]),
        fit(np.arange(8.0)[:, None], np.arange(8) % 3 > 0, "platt"),
    ],
)
def test_a_calibrator_survives_json(calibrator):
    stored = json.loads(json.dumps(as_json(calibrator)))
    assert TypeAdapter(Coefficients).validate_python(stored) == calibrator
