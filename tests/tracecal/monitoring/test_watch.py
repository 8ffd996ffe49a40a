"""The monitors: steps worked out by hand, and states that do not depend on how answers came."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bernoulli, kstest, rankdata

from tracecal.calibration.calibrator import Reference
from tracecal.monitoring.monitors import (
    ABOVE,
    BETS,
    BINS,
    ERROR,
    Batch,
    Promise,
    as_json,
    bet,
    bins_of_length,
    bins_of_probability,
    detect,
    from_json,
    judge,
    smoothed_ranks,
    start,
    uniform,
    watch,
)


def batch(rng, n, shift=0.0):
    logit = rng.normal(shift, 1, n)
    probability = np.where(rng.random(n) < 0.03, np.nan, 1 / (1 + np.exp(-logit)))
    kept = np.where(np.isnan(probability), np.nan, probability > 0.6)
    return Batch(probability, rng.integers(1, 300, n).astype(float), kept)


def cut(whole, places):
    edges = [0, *sorted(places), len(whole.probability)]
    for first, last in pairwise(edges):
        yield Batch(whole.probability[first:last], whole.length[first:last], whole.kept[first:last])


def test_ranks_by_hand():
    counts = np.array([2, 0, 1])
    found = smoothed_ranks(counts, np.array([1, 0, 2, 1]), np.array([0.5, 0.0, 1.0, 0.5]))
    # Of 2, 0, 1 and itself; then 2, 1, 1 and itself; and so on.
    assert found == pytest.approx([(2 + 0.5) / 4, 0, (4 + 2) / 6, (3 + 0.5 * 2) / 7])
    assert counts.tolist() == [2, 0, 1]


def test_ranks_agree_with_scipys():
    bins = np.random.default_rng(1).integers(0, 40, 700)
    found = smoothed_ranks(np.bincount(bins[:100], minlength=40), bins[100:], np.full(600, 0.5))
    expected = [(rankdata(bins[: n + 1])[-1] - 0.5) / (n + 1) for n in range(100, 700)]
    assert found == pytest.approx(expected)


def test_ranks_of_exchangeable_values_are_uniform_and_independent():
    rng = np.random.default_rng(2)
    bins = bins_of_length(rng.geometric(0.05, 20_000))
    counts = np.zeros(BINS["length"][1], dtype=int)
    found = smoothed_ranks(counts, bins, uniform("length", 0, 0, len(bins)))
    assert kstest(found, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.03


def test_bins_keep_the_order_and_the_extremes():
    probability = np.array([0.0, 1e-9, 0.2, 0.5, 0.9, 0.99, 1.0])
    found = bins_of_probability(probability)
    assert found[[0, -1]].tolist() == [0, BINS["probability"][1] - 1]
    assert (np.diff(found) >= 0).all()
    assert len({*found}) == 6  # 0 and 1e-9 are both as good as impossible
    lengths = np.array([1, 2, 63, 64, 65, 70, 128, 2**20, 2**30])
    found = bins_of_length(lengths)
    assert (np.diff(found[:-1]) >= 0).all()
    assert found.max() < BINS["length"][1]
    assert found[:4].tolist() == [1, 2, 63, 64]


def test_the_sequence_of_ties_goes_on_where_it_was():
    whole = uniform("kept", 3, 0, 50)
    assert uniform("kept", 3, 20, 30).tolist() == whole[20:].tolist()
    assert uniform("length", 3, 0, 1)[0] != whole[0]


def test_evidence_of_a_change_by_hand():
    wealth, sums = detect(np.zeros((1, 5)), np.array([[0.75, 0.25]]))
    first = (1 + BETS / 4) / 5
    second = (1 - BETS / 4) * ((1 + 0.01 * first.sum()) / 5 + 0.99 * first)
    assert first.sum() == pytest.approx(1)
    assert wealth[0] == pytest.approx(second)
    assert sums[0] == pytest.approx([first.sum(), second.sum()])


def test_evidence_less_the_number_of_answers_is_a_martingale():
    """Over all pairs of ranks from a fine grid, the mean is the number of answers."""
    grid = (np.arange(200) + 0.5) / 200
    pairs = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    _, sums = detect(np.zeros((len(pairs), 5)), pairs)
    assert sums.mean(0) == pytest.approx([1, 2])


def test_bets_on_the_error_rate_are_ratios_of_likelihoods():
    wrong = np.array([[1, 0, 0, 1]])
    wealth, found = bet(np.zeros((1, len(ABOVE))), wrong, 0.2, 0)
    q = 0.2 + 0.8 * ABOVE
    ratio = bernoulli.pmf(wrong[0][:, None], q) / bernoulli.pmf(wrong[0], 0.2)[:, None]
    started = [1 / (k * (k + 1)) for k in (1, 2, 3, 4)]
    expected = sum(started[k] * ratio[k:].prod(0).mean() for k in range(4)) + 1 / 5
    assert found[0, -1] == pytest.approx(expected)
    again, more = bet(bet(wealth * 0, wrong[:, :2], 0.2, 0)[0], wrong[:, 2:], 0.2, 2)
    assert again.tolist() == wealth.tolist()
    assert more[0, -1] == found[0, -1]


def test_at_the_target_bets_gain_nothing_on_average():
    every = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    _, found = bet(np.zeros((8, len(ABOVE))), every, 0.3, 0)
    weights = bernoulli.pmf(every, 0.3).prod(1)
    assert weights @ found == pytest.approx([1, 1, 1])


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(0, 500), max_size=6), st.booleans())
def test_answers_one_by_one_and_in_batches_leave_the_same_state(seed, places, changes):
    rng = np.random.default_rng(seed)
    whole = batch(rng, 500, shift=1.5 if changes else 0.0)
    reference = Reference(1 / (1 + np.exp(-rng.normal(size=100))), rng.integers(1, 300, 100))
    first = start(Promise(50), reference)
    at_once, piecewise = watch(first, whole), first
    for part in cut(whole, places):
        piecewise = from_json(json.loads(json.dumps(as_json(watch(piecewise, part)))))
    assert as_json(piecewise) == as_json(at_once)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60))
def test_labels_one_by_one_and_in_batches_leave_the_same_state(wrong, place):
    first = start(Promise(error_rate=0.2))
    wrong = np.array(wrong, dtype=bool)
    apart = judge(judge(first, wrong[:place]), wrong[place:])
    assert as_json(apart) == as_json(judge(first, wrong))


def test_a_change_is_noticed_by_the_monitor_that_it_concerns_and_the_alarm_stays():
    rng = np.random.default_rng(4)
    n = 600
    steady = Batch(rng.random(n), rng.integers(1, 30, n).astype(float), np.ones(n))
    state = watch(start(Promise(1000)), steady)
    assert not state.alarms
    longer = Batch(rng.random(n), rng.integers(20, 60, n).astype(float), np.ones(n))
    state = watch(state, longer)
    assert [*state.alarms] == ["length"]
    assert 600 < state.monitors["length"].alarm < 700
    after = watch(state, longer)
    assert after.monitors["length"] == state.monitors["length"]
    assert after.answers == 1800


def test_answers_without_confidence_raise_an_alarm_of_their_own():
    rng = np.random.default_rng(5)
    state = watch(start(Promise(1000)), Batch(rng.random(500), np.ones(500), np.ones(500)))
    unknown = np.full(60, np.nan)
    assert [*watch(state, Batch(unknown, unknown, unknown)).alarms] == ["unknown"]


def test_an_error_rate_above_its_target_is_noticed_after_a_long_good_record():
    rng = np.random.default_rng(6)
    state = judge(start(Promise(error_rate=0.1)), rng.random(5000) < 0.05)
    assert not state.alarms
    state = judge(state, rng.random(400) < 0.3)
    assert [*state.alarms] == [ERROR]
    assert 5000 < state.errors.alarm < 5150


def test_without_a_target_labels_change_nothing():
    state = start(Promise())
    assert judge(state, np.ones(9, dtype=bool)) is state
