"""A small run of the simulations (`make validate`), and that it would notice what it looks for."""

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtr

from simulations import (
    alarm_streams,
    alarms,
    asking,
    cascades,
    group_labels,
    guarantees,
    intervals,
    parts,
)
from simulations.claims import Claim
from tracecal.calibration import guarantees as guarantees_module
from tracecal.calibration import labelling as ask
from tracecal.calibration.calibrator import Reference
from tracecal.monitoring.monitors import Batch, Promise, start, watch

RUNS = 120


def fewer_intervals(runs):
    return intervals.claims(runs, intervals.POPULATIONS[1:2])


def some_that_ask(runs):
    names = ("single answers, rate just missed", "groups of 1 and 7, the small ones worse")
    return asking.claims(runs, {name: guarantees.POPULATIONS[name] for name in names})


def short_alarms(runs):
    return alarms.claims(runs // 2, [10**3])


@pytest.mark.parametrize(
    "claims",
    [
        guarantees.claims,
        parts.claims,
        group_labels.claims,
        fewer_intervals,
        some_that_ask,
        short_alarms,
    ],
)
def test_claims_hold(claims):
    for one in claims(RUNS):
        assert one.holds, one


def test_promises_about_cascades_hold_and_are_made():
    name = "single questions, the small model knows"
    (claim,) = cascades.claims(40, [name])
    assert claim.holds
    made, _ = cascades.broken(cascades.POPULATIONS[name], 20, 1)
    assert made > 6


def test_guarantees_are_given_where_they_can_be_kept():
    population = guarantees.POPULATIONS["groups of 4, risk falls with the score"]
    made, false = guarantees.broken(population, 60, 1)
    assert made > 6 > false


def test_looking_again_and_again_at_a_test_for_one_look_is_noticed(monkeypatch):
    """Bets that do not pay for the labels already given: too many of the promises are false."""

    def naive(groups, wrong, rate, level, population):
        found = []
        for group in groups:
            found += [wrong(int(answer)) for answer in group.answers]
            if bdtr(sum(found), len(found), rate) <= level:
                return True
        return False

    monkeypatch.setattr(ask, "_passes", naive)
    population = guarantees.POPULATIONS["one constant score"]
    _, false = asking.broken(population, "further", RUNS, 3)
    assert not Claim("", RUNS, false, 1 - guarantees.CONFIDENCE).holds


def test_a_test_that_forgets_groups_is_noticed(monkeypatch):
    """All answers as if they were independent: groups of like answers break the guarantee."""

    def as_if_single(group, probability, correct):
        return Part(np.arange(len(group)), probability, correct)

    Part = guarantees_module.Part
    monkeypatch.setattr(guarantees_module, "Part", as_if_single)
    population = guarantees.POPULATIONS["groups of 1 and 7, the small ones worse"]
    _, false = guarantees.broken(population, 20, 3)
    assert not Claim("", 20, false, 1 - guarantees.CONFIDENCE).holds


def test_members_of_a_group_on_both_sides_are_noticed():
    rng = np.random.default_rng(4)
    above = dict.fromkeys(group_labels.ESTIMATORS, 0)
    for run in range(30):
        answers = group_labels.planted(rng)
        apart = answers.select("example_id", group_id="example_id")
        for name, gain in group_labels.gains(answers, apart, run).items():
            above[name] += gain > 0
    assert not Claim("", 30, above["TRACE+"], 0.5).holds


def test_a_better_estimator_is_called_better():
    """The simulated interval has power: with a third of the noise, TRACE+ is better in most runs."""
    population = intervals.Population(300, (1,), "spread", "better")
    rng = np.random.default_rng(5)
    found = [intervals.compared(population.draw(rng), run) for run in range(6)]
    lows = pl.concat(found).filter(against="picked", metric="auroc_calibrated")["low"]
    assert (lows > 0).sum() >= 3


def test_ranks_within_a_fixed_sample_are_noticed(monkeypatch):
    """A long stream finds out the error of a small sample that does not grow."""

    def within(counts, bins, ties):
        below = np.cumsum(counts)[bins] - counts[bins]
        return (below + ties * (counts[bins] + 1)) / (counts.sum() + 1)

    monkeypatch.setattr(alarm_streams, "smoothed_ranks", within)
    raised = alarms.false_alarms(alarms.POPULATIONS["30 answers known"], 1000, 40)
    assert not Claim("", 40, raised, alarms.WATCHED / 2).holds


def test_streams_at_once_raise_the_alarms_of_one_by_one():
    rng = np.random.default_rng(5)
    references, given = [], []
    for _ in range(2):
        references.append(Reference(rng.random(80), rng.integers(1, 9, 80)))
        turned = np.append(rng.random(200), rng.random(200) ** 4)
        turned[rng.random(400) < 0.05] = np.nan
        given.append(Batch(turned, rng.integers(1, 9, 400).astype(float), np.full(400, np.nan)))
    promise = Promise(500)
    at_once = alarm_streams.first_alarms(references, given, promise)
    for number, (reference, stream) in enumerate(zip(references, given, strict=True)):
        own = watch(start(Promise(500, seed=promise.seed + number), reference), stream)
        raised = {name: one.alarm or 0 for name, one in own.monitors.items()}
        assert raised == {name: places[number] for name, places in at_once.items()}
        assert raised["probability"] > 200
