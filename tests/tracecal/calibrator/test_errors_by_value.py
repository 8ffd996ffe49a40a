"""Errors by the values of a column, against counts and scipy's intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest

from tracecal.calibrator.guarantee import error_interval, errors_by_value


@pytest.mark.parametrize(("wrong", "kept"), [(0, 20), (3, 20), (20, 20), (17, 300)])
def test_the_interval_is_scipys(wrong, kept):
    interval = binomtest(wrong, kept).proportion_ci(0.9, "exact")
    assert error_interval(wrong, kept, 0.1) == pytest.approx((interval.low, interval.high))


def test_the_errors_of_each_value_are_counted():
    values = ["en"] * 60 + ["de"] * 40 + ["fr"] * 5
    is_kept = np.arange(105) < 90
    wrong = np.r_[np.arange(60) < 3, np.arange(40) < 16, np.zeros(5, dtype=bool)]
    english, german, french = errors_by_value(values, is_kept, wrong, 0.2, 0.1)
    assert (english.value, english.n, english.kept, english.wrong) == ("en", 60, 60, 3)
    assert (german.n, german.kept, german.wrong) == (40, 30, 16)
    assert (french.kept, french.low, french.high) == (0, None, None)
