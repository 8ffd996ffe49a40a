"""The monitors: steps worked out by hand, and states that do not depend on how answers came."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bernoulli, kstest, rankdata

from simulations.alarm_streams import first_alarms, first_warnings
from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.betting import (
    DEPENDENCE_STAKES,
    EXCESS_RATES,
    STAKES,
    WINDOW,
    bet_on_change,
    bet_on_dependence,
    bet_on_errors,
)
from tracecal.monitoring.ranks import (
    LENGTH_BINS,
    PROBABILITY_BINS,
    bins_of_length,
    bins_of_probability,
    smoothed_ranks,
    tie_breakers,
)
from tracecal.monitoring.state import (
    ERROR_MONITOR,
    AlarmSettings,
    as_json,
    from_json,
    initial_state,
    judge,
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
        yield whole[first:last]


def test_ranks_by_hand():
    counts = np.array([2, 0, 1])
    found = smoothed_ranks(counts, np.array([1, 0, 2, 1]), np.array([0.5, 0.0, 1.0, 0.5]))
    # Of 2, 0, 1 and itself; then 2, 1, 1 and itself; and so on.
    assert found == pytest.approx([(2 + 0.5) / 4, 0, (4 + 2) / 6, (3 + 0.5 * 2) / 7])
    assert counts.tolist() == [2, 0, 1]


def test_ranks_agree_with_scipys():
    values = np.random.default_rng(1).integers(0, 40, 700)
    before = np.bincount(values[:100], minlength=40)
    found = smoothed_ranks(before, values[100:], np.full(600, 0.5))
    expected = [(rankdata(values[: n + 1])[-1] - 0.5) / (n + 1) for n in range(100, 700)]
    assert found == pytest.approx(expected)


def test_ranks_of_exchangeable_values_are_uniform_and_independent():
    rng = np.random.default_rng(2)
    values = bins_of_length(rng.geometric(0.05, 20_000))
    found = smoothed_ranks(
        np.zeros(LENGTH_BINS, int), values, tie_breakers("length", 0, 0, len(values))
    )
    assert kstest(found, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.03


def test_bins_keep_the_order_and_the_extremes():
    probability = np.array([0.0, 1e-9, 0.2, 0.5, 0.9, 0.99, 1.0])
    found = bins_of_probability(probability)
    assert found[[0, -1]].tolist() == [0, PROBABILITY_BINS - 1]
    assert (np.diff(found) >= 0).all()
    assert len({*found}) == 6  # 0 and 1e-9 are both as good as impossible
    assert len({*bins_of_length(np.arange(1, 46))}) == 45
    found = bins_of_length(np.array([1, 1.03, 2, 64, 70, 128, 2**20, 2**30]))
    assert found.tolist() == [0, 1, 32, 192, 196, 224, LENGTH_BINS - 1, LENGTH_BINS - 1]


def test_the_sequence_of_ties_goes_on_where_it_was():
    whole = tie_breakers("kept", 3, 0, 50)
    assert tie_breakers("kept", 3, 20, 30).tolist() == whole[20:].tolist()
    assert tie_breakers("length", 3, 0, 1)[0] != whole[0]


def test_evidence_of_a_change_by_hand():
    wealth, sums = bet_on_change(np.zeros((1, 5)), np.array([[0.75, 0.25]]))
    first = (1 + STAKES / 4) / 5
    second = (1 - STAKES / 4) * ((1 + 0.01 * first.sum()) / 5 + 0.99 * first)
    assert first.sum() == pytest.approx(1)
    assert wealth[0] == pytest.approx(second)
    assert sums[0] == pytest.approx([first.sum(), second.sum()])


def test_evidence_less_the_number_of_answers_is_a_martingale():
    """Over all pairs of ranks from a fine grid, the mean is the number of answers."""
    grid = (np.arange(200) + 0.5) / 200
    pairs = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    _, sums = bet_on_change(np.zeros((len(pairs), 5)), pairs)
    assert sums.mean(0) == pytest.approx([1, 2])


def test_bets_on_the_error_rate_are_ratios_of_likelihoods():
    wrong = np.array([[1, 0, 0, 1]])
    wealth, found = bet_on_errors(np.zeros((1, len(EXCESS_RATES))), wrong, 0.2, 0)
    q = 0.2 + 0.8 * EXCESS_RATES
    ratio = bernoulli.pmf(wrong[0][:, None], q) / bernoulli.pmf(wrong[0], 0.2)[:, None]
    started = [1 / (k * (k + 1)) for k in (1, 2, 3, 4)]
    expected = sum(started[k] * ratio[k:].prod(0).mean() for k in range(4)) + 1 / 5
    assert found[0, -1] == pytest.approx(expected)
    again, more = bet_on_errors(
        bet_on_errors(wealth * 0, wrong[:, :2], 0.2, 0)[0], wrong[:, 2:], 0.2, 2
    )
    assert again.tolist() == wealth.tolist()
    assert more[0, -1] == found[0, -1]


def test_at_the_target_bets_gain_nothing_on_average():
    every = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    _, found = bet_on_errors(np.zeros((8, len(EXCESS_RATES))), every, 0.3, 0)
    weights = bernoulli.pmf(every, 0.3).prod(1)
    assert weights @ found == pytest.approx([1, 1, 1])


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(0, 500), max_size=6), st.booleans())
def test_answers_one_by_one_and_in_batches_leave_the_same_state(seed, places, changes):
    rng = np.random.default_rng(seed)
    whole = batch(rng, 500, shift=1.5 if changes else 0.0)
    reference = Reference(1 / (1 + np.exp(-rng.normal(size=100))), rng.integers(1, 300, 100))
    first = initial_state(AlarmSettings(50), reference)
    at_once, piecewise = watch(first, whole), first
    for part in cut(whole, places):
        piecewise = from_json(json.loads(json.dumps(as_json(watch(piecewise, part)))))
    assert as_json(piecewise) == as_json(at_once)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60))
def test_labels_one_by_one_and_in_batches_leave_the_same_state(wrong, place):
    first = initial_state(AlarmSettings(error_rate=0.2))
    wrong = np.array(wrong, dtype=bool)
    apart = judge(judge(first, wrong[:place]), wrong[place:])
    assert as_json(apart) == as_json(judge(first, wrong))


def test_a_change_is_noticed_by_the_monitor_that_it_concerns_and_the_alarm_stays():
    rng = np.random.default_rng(4)
    n = 600
    steady = Batch(rng.random(n), rng.integers(1, 30, n).astype(float), np.ones(n))
    state = watch(initial_state(AlarmSettings(1000)), steady)
    assert not state.alarms
    longer = Batch(rng.random(n), rng.integers(20, 60, n).astype(float), np.ones(n))
    state = watch(state, longer)
    assert [*state.alarms] == ["length"]
    assert 600 < state.monitors["length"].alarm < 700
    after = watch(state, longer)
    for name in ("alarm", "evidence"):
        values = [getattr(one.monitors["length"], name) for one in (state, after)]
        assert values[0] == values[1]
    assert after.n_watched == 1800


def test_answers_without_confidence_raise_an_alarm_of_their_own():
    rng = np.random.default_rng(5)
    state = watch(
        initial_state(AlarmSettings(1000)), Batch(rng.random(500), np.ones(500), np.ones(500))
    )
    unknown = np.full(60, np.nan)
    assert [*watch(state, Batch(unknown, unknown, unknown)).alarms] == ["unknown"]


def test_an_error_rate_above_its_target_is_noticed_after_a_long_good_record():
    rng = np.random.default_rng(6)
    state = judge(initial_state(AlarmSettings(error_rate=0.1)), rng.random(5000) < 0.05)
    assert not state.alarms
    state = judge(state, rng.random(400) < 0.3)
    assert [*state.alarms] == [ERROR_MONITOR]
    assert 5000 < state.errors.alarm < 5150


def test_without_a_target_labels_change_nothing():
    state = initial_state(AlarmSettings())
    assert judge(state, np.ones(9, dtype=bool)) is state


def test_each_state_breaks_ties_in_a_way_of_its_own():
    """Answers of one length: with one seed for all, evidence was one path, and raised an alarm."""
    first, second = initial_state(AlarmSettings()), initial_state(AlarmSettings())
    assert first.seed != second.seed
    constant = Batch(np.full(50, 0.9), np.ones(50), np.ones(50))
    totals = [watch(one, constant).monitors["length"].evidence for one in (first, second)]
    assert totals[0] != totals[1]
    assert as_json(initial_state(AlarmSettings(), seed=first.seed)) == as_json(first)


def test_evidence_of_alike_neighbours_by_hand():
    last = np.linspace(0, 1, WINDOW + 1)
    ranks = np.array([0.75, 0.25])
    found = bet_on_dependence(np.ones((1, 3)), last[None], ranks[None])[0]
    first = 1 + DEPENDENCE_STAKES * 0.25 * min(1 - last[:-1].mean(), 0.5)
    usual = last[1:].mean()
    second = first * (1 + DEPENDENCE_STAKES * -0.25 * (0.75 - usual))
    assert found == pytest.approx(np.array([first, second]))


def test_evidence_of_alike_neighbours_is_a_martingale():
    """Whatever came before, the mean over the next rank is the wealth before it."""
    grid = (np.arange(1000) + 0.5) / 1000
    last = np.tile(np.random.default_rng(8).random(WINDOW + 1), (1000, 1))
    found = bet_on_dependence(np.full((1000, 3), 7.0), last, grid[:, None])
    assert found[:, 0].mean(0) == pytest.approx([7, 7, 7])
    assert (found > 0).all()


def test_alike_neighbours_are_noticed_after_a_false_alarm_too_and_a_change_is_not_taken_for_them():
    rng = np.random.default_rng(9)
    pairs = np.repeat(rng.random(400), 2)
    state = watch(
        initial_state(AlarmSettings(100), seed=1), Batch(pairs, np.ones(800), np.ones(800))
    )
    assert state.dependence_alarm[0] == "probability" and state.dependence_alarm[1] < 300
    changed = np.append(rng.random(500), rng.random(500) ** 3)
    state = watch(
        initial_state(AlarmSettings(), seed=1), Batch(changed, np.ones(1000), np.ones(1000))
    )
    assert state.alarms["probability"].alarm
    assert state.dependence_alarm is None


@pytest.mark.parametrize("signal", ["length", "unknown"])
def test_neighbours_alike_in_another_signal_than_the_probability_are_noticed(signal):
    """Lengths alike in runs of five, or answers without confidence in bursts."""
    rng = np.random.default_rng(4)
    n = 3000
    probability, length = rng.random(n), rng.integers(1, 200, n).astype(float)
    if signal == "length":
        length = np.repeat(length[: n // 5], 5)
    else:
        missing = np.repeat(rng.random(n // 20) < 0.2, 20)
        probability, length = (
            np.where(missing, np.nan, values) for values in (probability, length)
        )
    state = watch(initial_state(AlarmSettings(), seed=1), Batch(probability, length, np.ones(n)))
    assert state.dependence_alarm[0] == signal


def test_independent_and_constant_answers_are_not_alike():
    rng = np.random.default_rng(8)
    for seed in range(5):
        same = Batch(np.full(4500, 0.9), np.ones(4500), np.ones(4500))
        drawn = Batch(rng.random(4500), rng.integers(1, 50, 4500).astype(float), np.ones(4500))
        for batch in (same, drawn):
            assert watch(initial_state(AlarmSettings(), seed=seed), batch).dependence_alarm is None


def test_streams_at_once_raise_the_alarms_of_one_by_one():
    rng = np.random.default_rng(5)
    references, streams = [], []
    for _ in range(2):
        references.append(Reference(rng.random(80), rng.integers(1, 9, 80)))
        pairs = np.repeat(rng.random(300), 2)
        turned = np.append(pairs, rng.random(400) ** 6)
        turned[rng.random(1000) < 0.05] = np.nan
        streams.append(Batch(turned, rng.integers(1, 9, 1000).astype(float), np.full(1000, np.nan)))
    settings = AlarmSettings(300)
    at_once = first_alarms(references, streams, settings, seed=4)
    warnings = first_warnings(references, streams, seed=4)
    for number, (reference, stream) in enumerate(zip(references, streams, strict=True)):
        own = watch(initial_state(settings, reference, seed=4 + number), stream)
        alarms = {name: one.alarm or 0 for name, one in own.monitors.items()}
        assert alarms == {name: places[number] for name, places in at_once.items()}
        assert (own.dependence_alarm or ("", 0))[1] == warnings[number]
        assert alarms["probability"] > 0
        assert warnings[number] > 0
