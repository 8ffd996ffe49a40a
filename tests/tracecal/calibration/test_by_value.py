"""Errors by the values of a column, against counts and scipy's intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest

from tracecal.calibration.guarantees.by_value import (
    error_interval,
    errors_by_value,
    thresholds_by_value,
)
from tracecal.calibration.guarantees.error_rate import GroupedScores, threshold_by_line


@pytest.mark.parametrize(("wrong", "kept"), [(0, 20), (3, 20), (20, 20), (17, 300)])
def test_the_interval_is_scipys(wrong, kept):
    interval = binomtest(wrong, kept).proportion_ci(0.9, "exact")
    assert error_interval(wrong, kept, 0.1) == pytest.approx((interval.low, interval.high))


def test_the_errors_of_each_value_are_counted():
    values = ["en"] * 60 + ["de"] * 40 + ["fr"] * 5
    is_kept = np.arange(105) < 90
    wrong = np.r_[np.arange(60) < 3, np.arange(40) < 16, np.zeros(5, dtype=bool)]
    english, german, french = errors_by_value(values, is_kept, wrong, 0.1)
    assert (english.value, english.n, english.kept, english.wrong) == ("en", 60, 60, 3)
    assert (german.n, german.kept, german.wrong) == (40, 30, 16)
    assert (french.kept, french.low, french.high) == (0, None, None)


def test_each_value_has_a_threshold_of_its_own():
    rng = np.random.default_rng(0)
    values = rng.choice(["a", "b"], 300)
    score, wrong = rng.random(300), rng.random(300) < np.where(values == "a", 0.05, 0.6)
    nothing = GroupedScores.of_single([])
    tests = thresholds_by_value(values, GroupedScores.of_single(score), wrong, nothing, [0.2], 0.1)
    for value in ("a", "b"):
        mask = values == value
        alone = threshold_by_line(score[mask], wrong[mask], 0.2, 0.1, False)
        assert tests[value][0].guaranteed == pytest.approx(alone.guaranteed)
        assert (tests[value][0].n, tests[value][0].reason) == (mask.sum(), alone.reason)
    assert tests["a"][0].threshold is not None and tests["b"][0].threshold is None
