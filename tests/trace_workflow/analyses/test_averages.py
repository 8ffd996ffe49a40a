"""Means over repetitions and tasks, by hand."""

from statistics import stdev

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.analyses.averages import average_repetitions


def measured(series):
    """Rows from {(task, key): [value of each split]}."""
    rows = [
        (task, key, split, value)
        for (task, key), values in series.items()
        for split, value in enumerate(values)
    ]
    return pl.DataFrame(
        rows,
        schema={"task": pl.String, "key": pl.String, "split": pl.Int64, "value": pl.Float64},
        orient="row",
    )


def row(series, task, key="k"):
    found = average_repetitions(measured(series), ["key"], "split").filter(
        pl.col("task").eq_missing(task), key=key
    )
    return found.select("mean", "sd", "repetitions", "undefined").row(0)


def test_a_tasks_mean_and_spread():
    assert row({("t", "k"): [0.1, 0.4]}, "t") == (0.25, pytest.approx(stdev([0.1, 0.4])), 2, 0)
    assert row({("t", "k"): [0.5, None]}, "t") == (0.5, None, 2, 1)
    assert row({("t", "k"): [None, None]}, "t") == (None, None, 2, 2)


def test_the_average_is_of_the_tasks_means_and_spreads_as_their_mean_does():
    series = {("t", "k"): [0.1, 0.3], ("u", "k"): [0.6, 0.6], ("t", "other"): [1.0, 1.0]}
    assert row(series, None) == (pytest.approx(0.4), pytest.approx(stdev([0.35, 0.45])), 2, 0)


def test_a_task_without_values_does_not_count_and_a_split_needs_all_that_do():
    series = {("t", "k"): [0.1, 0.3, 0.5], ("u", "k"): [0.6, None, 0.8], ("v", "k"): [None] * 3}
    expected = (pytest.approx((0.3 + 0.7) / 2), pytest.approx(stdev([0.35, 0.65])), 3, 1)
    assert row(series, None) == expected
    assert row({("v", "k"): [None] * 3}, None) == (None, None, 3, 3)


@given(
    values=st.lists(st.none() | st.floats(0, 1), min_size=8, max_size=8),
    order=st.permutations(range(8)),
)
def test_the_order_of_rows_changes_nothing(values, order):
    rows = measured({("t", "k"): values[:4], ("u", "k"): values[4:]})
    assert average_repetitions(rows[order], ["key"], "split").equals(
        average_repetitions(rows, ["key"], "split")
    )
