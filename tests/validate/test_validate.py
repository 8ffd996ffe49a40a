"""A small run of `make validate`, and that it would notice what it looks for."""

import numpy as np
import polars as pl
import pytest

from tracecal.calibrate import risk_control
from validate import group_labels, intervals, promises
from validate.claims import Claim

RUNS = 120


@pytest.mark.parametrize("claims", [promises.claims, group_labels.claims, intervals.claims])
def test_claims_hold(claims):
    for one in claims(RUNS):
        assert one.holds, one


def test_promises_are_made_where_they_can_be_kept():
    population = promises.POPULATIONS["groups of 4, risk falls with the score"]
    made, false = promises.broken(population, 60, 1)
    assert made > 6 > false


def test_a_test_that_forgets_groups_is_noticed(monkeypatch):
    """All answers as if they were independent: groups of like answers break the promise."""

    def as_if_single(group, probability, correct):
        return Part(np.arange(len(group)), probability, correct)

    Part = risk_control.Part
    monkeypatch.setattr(risk_control, "Part", as_if_single)
    population = promises.POPULATIONS["groups of 1 and 7, a wrong member is a wrong group"]
    _, false = promises.broken(population, RUNS, 3)
    assert not Claim("", RUNS, false, 1 - promises.CONFIDENCE).holds


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
    rng, found = np.random.default_rng(5), 0
    for run in range(10):
        answers = intervals.planted(rng, 1)
        clear = answers.with_columns(
            pl.col("correct")
            .cast(float)
            .add(0.1 * pl.col("scores.best"))
            .alias("scores.trace_plus")
        )
        found += intervals.interval_of(clear, run)["auroc"][0] > 0
    assert found == 10
