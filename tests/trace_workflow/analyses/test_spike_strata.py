"""Strata of mean risk and spike gap, against hand counts and the paper's own sizes."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.analyses.spike_strata import (
    SCORES,
    add_risks,
    cut_evenly,
    spike_quintiles,
    spike_strata,
)
from tracecal.statistics.resampling import Resampling, draw_counts

BOOTSTRAP = Resampling(0, 1000, 0.95)


def answers(mean, peak, correct, groups=None):
    n = len(mean)
    keys = {"model": ["m"] * n, "task": ["t"] * n, "example_id": [f"e{i:04}" for i in range(n)]}
    features = pl.DataFrame(
        keys
        | {
            "mean_entropy": pl.Series(mean, dtype=pl.Float64),
            "max_entropy": pl.Series(peak, dtype=pl.Float64),
            "window_entropy": pl.Series(peak, dtype=pl.Float64),
            "len_norm_logp": np.exp(-np.array(mean, dtype=float)),
            "trace_risk": pl.Series(peak, dtype=pl.Float64),
        }
    )
    labels = pl.DataFrame(keys | {"correct": pl.Series(correct, dtype=pl.Boolean)})
    groups = groups or keys["example_id"]
    return add_risks(features, labels).with_columns(group_id=pl.Series(groups))


def random_answers(n, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.gamma(2, size=n)
    return answers(mean, mean + rng.gamma(1, size=n), rng.random(n) < 0.4)


def test_twelve_answers_by_hand():
    # Mean risks 1 to 12; within each tercile of four the gaps are 1, 2, 3, 4.
    mean = list(range(1, 13))
    gaps = [1, 2, 3, 4] * 3
    correct = [True, True, False, True] + [False] * 4 + [True] * 4
    found = spike_strata(
        answers(mean, [m + g for m, g in zip(mean, gaps, strict=True)], correct), BOOTSTRAP
    )
    expected = [
        ("low", "low", 2, 1.5, 1.5, 0, 0.0),
        ("low", "high", 2, 3.5, 3.5, 1, 0.5),
        ("mid", "low", 2, 5.5, 1.5, 2, 1.0),
        ("mid", "high", 2, 7.5, 3.5, 2, 1.0),
        ("high", "low", 2, 9.5, 1.5, 0, 0.0),
        ("high", "high", 2, 11.5, 3.5, 0, 0.0),
    ]
    columns = "risk_stratum spike_stratum n mean_risk spike_gap incorrect incorrect_rate".split()
    assert found.select(columns).rows() == expected


def test_the_papers_answers_fall_into_the_papers_strata():
    found = spike_strata(random_answers(1876), BOOTSTRAP)
    assert found["n"].to_list() == [313, 312, 313, 313, 313, 312]


@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=40), parts=st.integers(2, 5))
def test_parts_are_ordered_equal_values_together_and_counts_near(values, parts):
    array = np.array(values, dtype=float)
    found = cut_evenly(array, np.argsort(array), np.ones(len(array)), parts).tolist()
    order = sorted(zip(values, found, strict=True))
    assert [part for _, part in order] == sorted(found)
    assert len(set(order)) == len(set(values))
    if len(set(values)) == len(values):
        sizes = [found.count(part) for part in range(parts)]
        assert max(sizes) - min(sizes) <= 1


@given(
    rows=st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=30).filter(
        lambda rows: any(weight for _, weight in rows)
    ),
    parts=st.integers(2, 5),
)
def test_a_resample_is_cut_as_its_answers_written_out_would_be(rows, parts):
    values, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    out = np.repeat(values, weights.astype(int))
    written = cut_evenly(out, np.argsort(out), np.ones(len(out)), parts)
    found = cut_evenly(values, np.argsort(values), weights, parts)
    assert np.repeat(found, weights.astype(int)).tolist() == written.tolist()


def test_strata_are_cut_anew_in_each_resample():
    """One group of a hundred like answers moves the cuts whenever it is drawn more than once."""
    rng = np.random.default_rng(2)
    frame = random_answers(300)
    heavy = frame.with_columns(
        group_id=pl.when(pl.int_range(pl.len()) < 100)
        .then(pl.lit("heavy"))
        .otherwise("example_id"),
        correct=pl.Series(rng.random(300) < 0.5),
    ).sort("task", "example_id")
    found = spike_strata(heavy, BOOTSTRAP)
    counts = draw_counts(heavy["group_id"].to_list(), 0, 1000)
    rates = []
    for weights in counts.astype(int):
        written = heavy[np.repeat(np.arange(300), weights)]
        by_hand = spike_strata(
            written.with_columns(example_id=pl.format("{}", pl.int_range(pl.len()))),
            Resampling(0, 1, 0.95),
        )
        rates.append(by_hand["incorrect_rate"][0])
        if len(rates) == 40:
            break
    own = spike_strata(heavy, Resampling(0, 40, 0.95))
    ends = np.quantile([rate for rate in rates if rate is not None], [0.025, 0.975])
    assert own.select("incorrect_rate_low", "incorrect_rate_high").row(0) == pytest.approx(ends)
    assert found["n"].sum() == 300


def test_an_answer_within_one_window_has_no_gap():
    found = answers([0.1 + 0.2], [0.3], [True])
    assert found["spike_gap"].to_list() == [0.0]


def test_without_any_gap_the_high_strata_are_empty_and_null():
    found = spike_strata(answers([1, 2, 3], [1, 2, 3], [True, False, True]), BOOTSTRAP)
    high = found.filter(spike_stratum="high")
    assert high["n"].to_list() == [0, 0, 0]
    assert high["incorrect_rate"].null_count() == high["incorrect_rate_low"].null_count() == 3
    assert found.filter(spike_stratum="low")["n"].to_list() == [1, 1, 1]


def test_intervals_hold_the_rate_and_know_of_groups():
    single = spike_strata(random_answers(600), BOOTSTRAP)
    assert (single["incorrect_rate_low"] <= single["incorrect_rate"]).all()
    assert (single["incorrect_rate"] <= single["incorrect_rate_high"]).all()
    # A binomial interval where every answer is its own group.
    n, rate = single["n"].to_numpy(), single["incorrect_rate"].to_numpy()
    width = (single["incorrect_rate_high"] - single["incorrect_rate_low"]).to_numpy()
    np.testing.assert_allclose(width, 3.92 * np.sqrt(rate * (1 - rate) / n), rtol=0.25)
    # The same answers four times over are no more evidence.
    once = random_answers(600)
    copies = pl.concat(
        once.with_columns(pl.col("example_id") + f"-{k}", group_id=pl.col("example_id"))
        for k in range(4)
    )
    fourfold = spike_strata(copies, BOOTSTRAP)
    assert fourfold["incorrect_rate"].to_list() == pytest.approx(single["incorrect_rate"].to_list())
    again = (fourfold["incorrect_rate_high"] - fourfold["incorrect_rate_low"]).to_numpy()
    np.testing.assert_allclose(again, width, rtol=0.2)


def test_row_order_changes_nothing():
    frame = random_answers(200)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
    for analysis in (spike_strata, spike_quintiles):
        assert analysis(frame, BOOTSTRAP).equals(analysis(shuffled, BOOTSTRAP))
        other = analysis(frame, BOOTSTRAP._replace(seed=1))
        assert not analysis(frame, BOOTSTRAP).equals(other), "the seed draws the intervals"


def test_quintiles_divide_the_low_tercile_and_rank_among_all():
    frame = random_answers(300)
    found = spike_quintiles(frame, BOOTSTRAP)
    assert found["n"].to_list() == [20] * 5
    assert found["spike_gap"].is_sorted()
    # By hand: the low tercile, its first fifth by gap, mean ranks among all 300.
    ranked = frame.sort("mean_risk").with_row_index("rank")
    first = ranked.head(100).sort("spike_gap").head(20)
    assert found["mean_risk"][0] == pytest.approx(first["mean_risk"].mean())
    percentile = (first["rank"].cast(pl.Float64) + 0.5).mean() / 300
    assert found["mean_token_entropy_percentile"][0] == pytest.approx(percentile)
    assert found["len_norm_logp_percentile"][0] == pytest.approx(percentile), "surprisal is risk"
    rates = ~first["correct"]
    assert found["incorrect_rate"][0] == pytest.approx(rates.mean())


def test_percentiles_stay_within_one():
    found = spike_quintiles(answers([1.0] * 7, [1.0] * 7, [True] * 7), BOOTSTRAP)
    for name in SCORES:
        assert found[f"{name}_percentile"].drop_nulls().to_list() == [pytest.approx(0.5)]


def test_answers_without_entropies_are_left_out():
    known = {"mean_entropy": [1.0, None], "max_entropy": [3.0, None], "window_entropy": [2.0, None]}
    keys = {"model": ["m", "m"], "task": ["t", "t"], "example_id": ["a", "b"]}
    labels = pl.DataFrame(keys | {"correct": [True, False]})
    assert add_risks(pl.DataFrame(keys | known), labels)["example_id"].to_list() == ["a"]


def test_without_answers_all_strata_are_empty():
    none = answers([], [], [])
    for found, height in (
        (spike_strata(none, BOOTSTRAP), 6),
        (spike_quintiles(none, BOOTSTRAP), 5),
    ):
        assert found["n"].to_list() == [0] * height
        assert found["incorrect_rate"].null_count() == height
