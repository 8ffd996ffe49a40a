"""A small run of the simulations (`make validate`), and that it would notice what it looks for."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtr
from sklearn.metrics import cohen_kappa_score

from simulations import (
    alarm_streams,
    alarms,
    alternatives,
    asking,
    checks,
    forecasts,
    group_labels,
    guarantees,
    intervals,
    judges,
    lines,
    overall,
    parts,
)
from simulations.claims import Claim
from tracecal.calibrator.schema import Reference
from tracecal.guarantees import sequential
from tracecal.guarantees.error_rate import overall_threshold
from tracecal.guarantees.line import Places
from tracecal.guarantees.part_tests import PartScores
from tracecal.monitoring.state import initial_state

pytestmark = pytest.mark.slow

RUNS = 120


def some_guarantees(runs):
    """Those that were hard once, and those by stricter rates."""
    every = guarantees.POPULATIONS | guarantees.SPECIAL
    chosen = [name for name in every if "groups of 1" in name or "stricter" in name]
    chosen += ["single answers, rate just missed", "one constant score"]
    few = {name: every[name] for name in chosen if every[name].groups < 500}
    return guarantees.claims(runs // 2, few)


def lines_of_few_labels(runs):
    return itertools.islice(lines.claims(runs), 42)


def questions_that_repeat(runs):
    return itertools.chain(lines.group_claims(runs // 2), guarantees.unit_claims(runs // 4))


def renamed_ids(runs):
    return guarantees.renamed_claims(runs // 4)


def few_recalls(runs):
    return itertools.islice(lines.recall_claims(runs), 4)


def some_overall(runs):
    return itertools.islice(overall.claims(runs), 0, None, 5)


def some_overall_of_questions(runs):
    return itertools.islice(overall.group_claims(runs), 0, None, 5)


def few_looks(runs):
    return overall.look_claims(runs // 3)


def fewer_intervals(runs):
    return intervals.claims(runs, intervals.POPULATIONS[1:2])


def few_rankings(runs):
    return intervals.rankings(runs // 4, [100])


def few_agreements(runs):
    return intervals.agreements(runs // 2, [(20, 1), (200, 5)])


def some_that_ask(runs):
    name = "groups of 1 and 7, the large ones worse"
    files = ("200 keep 1 right of 10, 3 keep 8 wrong", "wrong as a whole")
    return asking.claims(runs, {name: guarantees.POPULATIONS[name]}, files)


def short_alarms(runs):
    return alarms.claims(runs // 2, [10**3])


def few_warnings(runs):
    return alarms.warning_claims(runs // 2)


@pytest.mark.parametrize(
    "claims",
    [
        some_guarantees,
        lines_of_few_labels,
        questions_that_repeat,
        renamed_ids,
        few_recalls,
        some_overall,
        some_overall_of_questions,
        few_looks,
        parts.claims,
        group_labels.claims,
        fewer_intervals,
        few_rankings,
        few_agreements,
        some_that_ask,
        short_alarms,
        few_warnings,
        checks.claims,
    ],
)
def test_claims_hold(claims):
    for one in claims(RUNS):
        assert one.holds, one


def test_as_many_labels_as_are_planned_do_in_about_as_many_draws_as_said():
    """Of a middling score, for which draws of the very labels at hand say 80 % where .6 is true."""
    (found,) = forecasts.true_shares("accuracy .60, AUROC .75", [0.8], 8, 2)
    assert len(found) >= 5 and 0.7 < found.mean() < 0.95


@pytest.mark.parametrize("name", forecasts.POPULATIONS)
def test_labels_are_planned_for_every_population(name):
    source, rate = forecasts.POPULATIONS[name]
    found = forecasts.forecast(source, rate, 20, 0)["guaranteed"]
    assert found[0] < 0.9 and found[0] < found[-1] and found[-1] > 0.5


def test_thresholds_hold_for_the_kinds_of_answers_that_they_decide_about():
    for claim in alternatives.claims(5):
        assert claim.holds, claim


def test_a_useful_judge_keeps_more_answers_and_a_bad_one_costs_next_to_nothing():
    found = judges.simulate_outcomes("weak trace", 25, 1)
    kept = {
        kind: np.mean([outcome.coverage for outcome in by_run]) for kind, by_run in found.items()
    }
    assert kept["useful"] > kept["none"] + 0.2
    assert kept["inverse"] == pytest.approx(kept["none"], abs=0.02)
    assert (
        sum(outcome.error_rate > judges.RATE for by_run in found.values() for outcome in by_run)
        < 20
    )


def test_a_judge_has_the_kappa_that_is_asked_for():
    rng = np.random.default_rng(0)
    correct = rng.random(200_000) < 0.7
    said = rng.random(200_000) < np.where(correct, *judges.approval_rates("useful", 0.7))
    assert cohen_kappa_score(correct, said) == pytest.approx(judges.KAPPA, abs=0.01)


def test_a_threshold_at_the_first_error_too_many_is_noticed(monkeypatch):
    """Keeping the answer at the order statistic, and all that tie with it."""
    monkeypatch.setattr(
        overall,
        "overall_threshold",
        lambda *draw: None if (at := overall_threshold(*draw)) is None else at - 1e-6,
    )
    population = overall.populations(0.1)["one value"]
    broken = overall.count_broken(population, 0.1, 100, RUNS, 2)
    assert not Claim("", RUNS, broken, overall.LEVEL).holds


def test_looks_that_each_take_the_whole_chance_are_noticed():
    """Three at .1 each are false more often than .1, as a plan says, by a binomial test."""
    broken = sum(overall.look_repeatedly(None, run)[0] for run in range(60))
    assert broken > 0.15 * 60


def test_guarantees_are_given_where_they_can_be_kept():
    population = guarantees.POPULATIONS["groups of 4, risk falls with the score"]
    made, false = guarantees.count_broken(population, 60, 1)
    assert made > 6 > false


def test_looking_again_and_again_at_a_test_for_one_look_is_noticed(monkeypatch):
    """Tests that do not pay for the labels already seen: too many of the guarantees are false."""

    def naive(kept, is_wrong, rate, level, population):
        labels = []
        for index in kept:
            labels.append(is_wrong(int(index)))
            if bdtr(sum(labels), len(labels), rate) <= level:
                return True
        return False

    monkeypatch.setattr(sequential, "passes_test", naive)
    risk = guarantees.constant_risk(0.201)
    population = guarantees.GroupPopulation(1000, (1,), risk, 0.2)
    _, false = asking.count_broken(population, "further", RUNS, 3)
    assert not Claim("", RUNS, false, 1 - guarantees.CONFIDENCE).holds


def test_answers_that_count_alike_where_questions_repeat_are_noticed(monkeypatch):
    """All answers of whole questions as if each was drawn by itself."""
    monkeypatch.setattr(guarantees, "one_of_each", lambda answers, rng: answers)
    risk = guarantees.constant_risk(0.31)
    population = guarantees.GroupPopulation(
        60, (30,), risk, 0.3, correlation=1.0, score=np.zeros_like
    )
    _, false = guarantees.count_broken(population, 60, 3)
    assert not Claim("", 60, false, 1 - guarantees.CONFIDENCE).holds


@pytest.mark.parametrize(
    ("name", "unit", "other"),
    [
        ("groups of 1 and 7, the large ones worse", "questions", "answers"),
        ("groups of 1 and 7, the small ones worse", "answers", "questions"),
    ],
)
def test_a_guarantee_of_the_other_unit_is_noticed(monkeypatch, name, unit, other):
    """Labels drawn by one unit say nothing of the other where the number goes with the error."""
    true_rate = guarantees.true_rate

    def rate(answers, _):
        return 1.3 * true_rate(answers, answers.score, -np.inf, unit)

    monkeypatch.setattr(guarantees, "just_missed", rate)
    monkeypatch.setattr(guarantees, "true_rate", lambda *terms: true_rate(*terms[:3], other))
    made, false = guarantees.count_broken_by_unit(guarantees.REPEATS[name], unit, 40, 3)
    assert made > 10 and not Claim("", 40, false, 1 - guarantees.CONFIDENCE).holds


def test_bets_that_count_documents_alike_are_noticed(monkeypatch):
    """A guarantee of a mean document says nothing of all parts, where large ones are worse."""
    population = parts.POPULATIONS[
        "most answers have one part, the others twenty that fail together"
    ]
    totals = PartScores.totals

    def as_if_alike(scores, values, limit):
        return totals(replace(scores, size=np.ones_like(scores.size)), values, 1)

    monkeypatch.setattr(PartScores, "totals", as_if_alike)
    _, false = parts.count_broken(population, 40, 3)
    assert not Claim("", 40, false, 1 - guarantees.CONFIDENCE).holds


def test_members_of_a_group_on_both_sides_are_noticed():
    rng = np.random.default_rng(4)
    above = dict.fromkeys(group_labels.ESTIMATORS, 0)
    for run in range(30):
        answers = group_labels.plant_task(rng)
        apart = answers.select("example_id", group_id="example_id")
        for name, gain in group_labels.measure_gains(answers, apart, run).items():
            above[name] += gain > 0
    assert not Claim("", 30, above["TRACE+"], 0.5).holds


def test_a_better_estimator_is_called_better():
    """The simulated interval has power: with a third of the noise, TRACE+ is better in most runs."""
    population = intervals.TaskPopulation(300, (1,), "spread", "better")
    rng = np.random.default_rng(5)
    found = [intervals.compare(population.draw(rng), run) for run in range(6)]
    lows = pl.concat(found).filter(against="picked", metric="auroc_calibrated")["low"]
    assert (lows > 0).sum() >= 3


def test_ranks_within_a_fixed_sample_are_noticed(monkeypatch):
    """A long stream finds out the error of a small sample that does not grow."""

    def within(counts, bins, ties):
        below = np.cumsum(counts)[bins] - counts[bins]
        return (below + ties * (counts[bins] + 1)) / (counts.sum() + 1)

    monkeypatch.setattr(alarm_streams, "smoothed_ranks", within)
    raised = alarms.count_false_alarms(alarms.POPULATIONS["30 answers known"], 1000, 40)
    assert not Claim("", 40, raised, alarms.WATCHED / 2).holds


def test_one_seed_for_all_states_is_noticed(monkeypatch):
    """Answers of one token: evidence is then the same path in every state."""
    monkeypatch.setattr(
        alarms, "initial_state", lambda settings: initial_state(settings, seed=2026)
    )
    raised = alarms.count_constant_alarms(3000, 3)
    assert raised == 3


@pytest.mark.parametrize("kind", list(alarms.MISLEADING_STREAMS))
def test_labels_told_by_what_they_say_and_wrong_ones_are_noticed(kind):
    raised = alarms.count_false_error_alarms(kind, 3000, 100, 0.1, 0.05)
    assert not Claim("", 100, raised, 0.05).holds


def test_a_daily_cycle_is_noticed():
    assert alarms.count_daily_alarms(3, 3) == 3
    assert alarms.count_hourly_alarms(10, 5, 0.5, None) > 2, "labels of the whole day"
    assert alarms.count_hourly_alarms(10, 5, 0.5, alarms.EXTREME) < 2, "labels of that hour"


@pytest.mark.parametrize("name", ["identical pairs", "runs of 5, correlated by .3"])
def test_alike_neighbours_are_noticed(name):
    """Both kinds of monitors raise more alarms than stated, and nearly all of it is told."""
    raised = alarms.count_dependent_alarms(name, 10, 6000)
    assert not Claim("", 10, raised, 0.15).holds
    raised = alarms.count_dependent_error_alarms("runs of 5, identical", 20, 0.05)
    assert not Claim("", 20, raised, 0.05).holds
    given = []
    for run in range(10):
        rng = np.random.default_rng([run, 5])
        given.append(alarms.make_batch(alarms.DEPENDENT[name](rng, 1000), rng))
    told = alarm_streams.first_warnings([Reference()] * 10, given)
    assert (told > 0).sum() >= 8


@pytest.mark.parametrize("rate", lines.RATES)
def test_atoms_that_just_miss_are_guaranteed_as_seldom_as_stated_exactly(rate):
    populations = lines.hostile(rate)
    for n_atoms in ("one tie for all", "two atoms", "five atoms"):
        population = populations[f"{n_atoms}, just missed"]
        chance = lines.exactly_broken(population, 50, rate)
        _, broken = lines.count_broken(population, 50, rate, 400, 5)
        assert 0 < chance < lines.LEVEL
        assert abs(broken / 400 - chance) < 4 * np.sqrt(chance / 400)


def test_many_tests_at_the_level_of_a_single_one_are_noticed(monkeypatch):
    """A binomial test at each place, as if it were the only one."""
    naive = lambda places, rate, level: bdtr(places.wrong, places.kept, rate) <= level  # noqa: E731
    monkeypatch.setattr(Places, "passes", naive)
    population = lines.hostile(0.2)["the target throughout"]
    _, broken = lines.count_broken(population, 100, 0.2, RUNS, 1)
    assert not Claim("", RUNS, broken, lines.LEVEL, cells=100).holds
