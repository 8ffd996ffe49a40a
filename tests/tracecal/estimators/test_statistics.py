"""Entropy Sentinel's statistics against NumPy and SciPy."""

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tracecal.estimators import features
from tracecal.estimators import operators as op
from tracecal.estimators.features import FEATURES, STATISTICS, statistics
from tracecal.estimators.registry import ESTIMATORS

X = pl.col("x")
answers = st.lists(
    st.lists(st.floats(0, 12, width=32), min_size=1, max_size=30), min_size=1, max_size=6
)


def apply(rows):
    frame = pl.DataFrame({"x": rows}, schema={"x": pl.List(pl.Float32)})
    return frame.select(
        op.per_answer(X, lambda block, n=n: statistics(block)[:, n]).alias(name)
        for n, name in enumerate(STATISTICS)
    )


def raw_moment(order):
    """SciPy's standardised moment, of the deviation that is standardised by here."""
    known = {3: scipy.stats.skew, 4: lambda x: scipy.stats.kurtosis(x, fisher=False)}[order]

    def restated(x):
        if len(x) == 1 or x.std() == 0:
            return 0.0
        return known(x) * x.std() ** order / (x.std(ddof=1) ** order + 1e-8)

    return restated


RESTATED = {
    "entropy_sum": np.sum,
    "entropy_deviation": lambda x: x.std(ddof=1) if len(x) > 1 else 0.0,
    "entropy_q10": lambda x: np.quantile(x, 0.1),
    "entropy_q25": lambda x: np.quantile(x, 0.25),
    "entropy_q50": np.median,
    "entropy_q75": lambda x: np.quantile(x, 0.75),
    "entropy_q90": lambda x: np.quantile(x, 0.9),
    "entropy_skewness": raw_moment(3),
    "entropy_kurtosis": raw_moment(4),
}


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # SciPy's, of equal values
@given(rows=answers)
def test_statistics_agree_with_numpy_and_scipy(rows):
    # Where values differ by rounding alone, SciPy's moments are undefined.
    rows = [np.round(np.array(row, dtype=np.float32), 3).tolist() for row in rows]
    found = apply(rows)
    assert tuple(found.columns) == STATISTICS == tuple(RESTATED)
    for name, restated in RESTATED.items():
        expected = [restated(np.array(row, dtype=np.float32).astype(float)) for row in rows]
        np.testing.assert_allclose(found[name], expected, rtol=1e-7, atol=1e-9, err_msg=name)


def test_many_answers_are_those_one_by_one(monkeypatch):
    monkeypatch.setattr(features, "BLOCK", 7)
    rng = np.random.default_rng(2)
    rows = [rng.exponential(1, size).tolist() for size in rng.integers(1, 40, 60)]
    alone = pl.concat([apply([row]) for row in rows])
    np.testing.assert_allclose(apply(rows), alone, rtol=1e-12)


def test_null_and_empty_lists_have_none():
    nothing = [None] * len(STATISTICS)
    found = apply([None, [3.0, 1.0], []])
    assert [list(found.row(0)), list(found.row(2))] == [nothing, nothing]
    assert found[1].equals(apply([[3.0, 1.0]]))


def test_one_token_has_no_spread_and_no_shape():
    (row,) = apply([[2.0]]).rows(named=True)
    for name in ("entropy_deviation", "entropy_skewness", "entropy_kurtosis"):
        assert row[name] == 0.0


def test_entropy_sentinel_is_fitted_on_eleven_features():
    (sentinel,) = (one for one in ESTIMATORS if one.id == "entropy_sentinel")
    assert len(set(sentinel.features)) == 11
    assert set(sentinel.features) == {*STATISTICS, "mean_entropy", "max_entropy"}
    assert set(sentinel.features) <= set(FEATURES)
