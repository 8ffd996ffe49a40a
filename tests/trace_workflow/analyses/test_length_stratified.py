"""Thirds by length: by hand, by their definition, and the metrics within them."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.task_answers import made_up, shuffled
from trace_workflow.analyses.length_stratified import STRATA, metrics_by_length, strata
from tracecal.fits.predictions import calibrate_all
from tracecal.statistics.metrics import NAMES

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=40)


def of(lengths):
    ids = [f"e{index:03}" for index in range(len(lengths))]
    return pl.DataFrame({"example_id": ids, "length": [float(length) for length in lengths]})


def named(lengths):
    return strata(of(lengths)).sort("example_id")["stratum"].to_list()


def test_strata_by_hand():
    assert named([3, 1, 2]) == ["long", "short", "medium"]
    assert named([5, 5, 5, 5]) == ["medium"] * 4
    # Lengths 2, 4, 9 have mean ranks 2, 6 and 9.5 of ten: 1.5, 5.5 and 9 tenths.
    assert named([2, 2, 2, 4, 4, 4, 4, 4, 9, 9]) == ["short"] * 3 + ["medium"] * 5 + ["long"] * 2
    assert named([7, 7]) == ["medium"] * 2
    assert named([7, 8]) == ["short", "long"]


@given(lengths=LENGTHS)
def test_a_length_belongs_to_the_third_that_holds_its_mean_rank(lengths):
    n = len(lengths)
    for length, stratum in zip(lengths, named(lengths), strict=True):
        shorter, same = sum(x < length for x in lengths), lengths.count(length)
        middle = (shorter + Fraction(same, 2)) / n
        assert stratum == STRATA[int(3 * middle)]


@given(n=st.integers(3, 200))
def test_lengths_that_all_differ_give_even_thirds(n):
    counts = [named(range(n)).count(stratum) for stratum in STRATA]
    assert sum(counts) == n
    assert all(abs(count - n / 3) < 1 for count in counts)


@given(lengths=LENGTHS, seed=st.integers(0, 9))
def test_row_order_changes_no_stratum(lengths, seed):
    mixed = strata(shuffled(of(lengths), seed)).sort("example_id")
    assert mixed["stratum"].to_list() == named(lengths)


def measured(answers, splits, lengths):
    predictions, _ = calibrate_all(answers, splits, {"seq_logp": ["scores.seq_logp"]}, "platt")
    metrics = metrics_by_length(
        predictions,
        answers.select("example_id", "correct"),
        answers.select("example_id", seq_logp="scores.seq_logp"),
        lengths,
        model="m",
        task="t",
        estimators=["seq_logp"],
        ece_bins=15,
    )
    return predictions, metrics


def test_metrics_are_those_of_the_stratums_predictions():
    answers, splits = made_up("t")
    lengths = of(np.random.default_rng(1).integers(1, 30, answers.height))
    predictions, metrics = measured(answers, splits, lengths)
    rows = predictions.join(answers, on="example_id").join(strata(lengths), on="example_id")
    for (stratum, split), part in rows.group_by("stratum", "split"):
        found = metrics.filter(stratum=stratum, split=split)
        error = part["probability"] - part["correct"].cast(pl.Float64)
        assert found.filter(metric="brier")["value"].item() == pytest.approx((error**2).mean())
        right = part.filter("correct")["scores.seq_logp"].to_numpy()[:, None]
        wrong = part.filter(~pl.col("correct"))["scores.seq_logp"].to_numpy()
        ahead = (right > wrong).mean()
        assert found.filter(metric="auroc")["value"].item() == pytest.approx(ahead)
    evaluated = predictions.filter(split=0).height
    assert metrics.filter(split=0, metric="brier")["n"].sum() == evaluated


def test_an_empty_stratum_is_undefined():
    answers, splits = made_up("t")
    _, metrics = measured(answers, splits, of([4] * answers.height))
    assert metrics.filter(stratum="short")["value"].null_count() == 3 * len(NAMES)
    assert set(metrics.filter(stratum="long")["n"]) == {0}
    assert metrics.filter(stratum="medium")["value"].null_count() == 0


def test_row_order_changes_nothing():
    answers, splits = made_up("t")
    lengths = of(range(answers.height))
    mixed = measured(shuffled(answers), shuffled(splits), shuffled(lengths))
    assert mixed[1].equals(measured(answers, splits, lengths)[1])
