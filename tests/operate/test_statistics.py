"""Entropy Sentinel's statistics against NumPy and SciPy."""

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tracecal.operate import operators as op
from tracecal.operate.features import FEATURES
from tracecal.operate.statistics import deviation, quantile, standardised_moment, statistics
from tracecal.registry import ESTIMATORS

X = pl.col("x")
answers = st.lists(
    st.lists(st.floats(0, 12, width=32), min_size=1, max_size=30), min_size=1, max_size=6
)


def apply(expression, rows):
    frame = pl.DataFrame({"x": rows}, schema={"x": pl.List(pl.Float32)})
    return frame.select(value=expression)["value"].to_list()


def raw_moment(order):
    """SciPy's standardised moment, of the deviation that is standardised by here."""
    known = {3: scipy.stats.skew, 4: lambda x: scipy.stats.kurtosis(x, fisher=False)}[order]

    def restated(x):
        if len(x) == 1 or x.std() == 0:
            return 0.0
        return known(x) * x.std() ** order / (x.std(ddof=1) ** order + 1e-8)

    return restated


RESTATED = {
    "deviation": (deviation(X), lambda x: x.std(ddof=1) if len(x) > 1 else 0.0),
    "quantile_10": (quantile(X.list.sort(), 0.1), lambda x: np.quantile(x, 0.1)),
    "quantile_50": (quantile(X.list.sort(), 0.5), np.median),
    "quantile_90": (quantile(X.list.sort(), 0.9), lambda x: np.quantile(x, 0.9)),
    "skewness": (standardised_moment(X, 3), raw_moment(3)),
    "kurtosis": (standardised_moment(X, 4), raw_moment(4)),
    "sum": (statistics(X, X.list.sort())["entropy_sum"], np.sum),
}


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # SciPy's, of equal values
@pytest.mark.parametrize("name", RESTATED)
@given(rows=answers)
def test_statistics_agree_with_numpy_and_scipy(name, rows):
    expression, restated = RESTATED[name]
    # Where values differ by rounding alone, SciPy's moments are undefined.
    rows = [np.round(np.array(row, dtype=np.float32), 3).tolist() for row in rows]
    expected = [restated(np.array(row, dtype=np.float32).astype(float)) for row in rows]
    np.testing.assert_allclose(apply(expression, rows), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", statistics(X, X.list.sort()))
def test_many_answers_are_those_one_by_one(name, monkeypatch):
    monkeypatch.setattr(op, "AT_ONCE", 7)
    rng = np.random.default_rng(2)
    rows = [rng.exponential(1, size).tolist() for size in rng.integers(1, 40, 60)]
    alone = [apply(statistics(X, X.list.sort())[name], [row])[0] for row in rows]
    assert apply(statistics(X, X.list.sort())[name], rows) == pytest.approx(alone, rel=1e-12)


def test_one_token_has_no_spread_and_no_shape():
    for name in ("entropy_deviation", "entropy_skewness", "entropy_kurtosis"):
        assert apply(statistics(X, X.list.sort())[name], [[2.0]]) == [0.0]


def test_entropy_sentinel_is_fitted_on_eleven_features():
    (sentinel,) = (one for one in ESTIMATORS if one.id == "entropy_sentinel")
    assert len(set(sentinel.features)) == 11
    assert set(sentinel.features) == {*statistics(X, X.list.sort()), "mean_entropy", "max_entropy"}
    assert set(sentinel.features) <= set(FEATURES)
