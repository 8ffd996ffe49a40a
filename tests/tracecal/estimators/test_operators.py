"""The operators against hand-computed cases, NumPy restatements and their properties."""

import math
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from support import operators_one_by_one as one_by_one
from tracecal.estimators import features
from tracecal.estimators import operators as op
from tracecal.estimators.features import FEATURES, answer_features
from tracecal.estimators.registry import ESTIMATORS

X = pl.col("x")
values = st.floats(0, 12, width=32)
answers = st.lists(st.lists(values, min_size=1, max_size=30), min_size=1, max_size=6)


def apply(expression: pl.Expr, rows: list[list[float]]) -> list[float]:
    frame = pl.DataFrame({"x": rows}, schema={"x": pl.List(pl.Float32)})
    return frame.select(value=expression)["value"].to_list()


def test_hand_computed_decay():
    w = [1, math.exp(-0.5), math.exp(-1)]
    expected = (w[0] * 3 + w[1] * 1 + w[2] * 2) / sum(w)
    assert apply(op.decayed(X, 2), [[3, 1, 2]]) == [pytest.approx(expected)]


def test_hand_computed_window():
    # Windows of four: (1+2+6+3)/4, (2+6+3+1)/4; of a shorter answer: its mean.
    assert apply(op.window_peak(X, 4), [[1, 2, 6, 3, 1], [1, 2, 6]]) == [3.0, 3.0]


def test_hand_computed_length_normalisation():
    assert apply(op.length_normalised(X, 0.25), [[1.0] * 16]) == [pytest.approx(16 / 2)]


def test_hand_computed_slope():
    assert apply(op.per_answer(X, features.slope), [[1, 3, 5], [2, 2], [7]]) == pytest.approx(
        [2.0, 0.0, 0.0]
    )


def test_hand_computed_trace_risk():
    # One token: D = M = H, L = s.
    frame = pl.DataFrame({"s": [[0.5]], "h": [[2.0]]})
    risk = frame.select(op.trace_risk(pl.col("s"), pl.col("h"))).item()
    assert risk == pytest.approx(0.4 * 2 + 0.4 * 2 + 0.2 * 0.5)


def numpy_decayed(x, decay):
    weights = np.exp(-np.arange(len(x)) / decay)
    return np.average(x, weights=weights)


def numpy_window(x, window):
    if len(x) < window:
        return x.mean()
    return np.convolve(x, np.ones(window) / window, mode="valid").max()


def numpy_slope(x):
    return np.polyfit(np.arange(1, len(x) + 1), x, 1)[0] if len(x) > 1 else 0.0


ABOVE_1 = partial(features.rate, condition=lambda x: x > 1)
RESTATED = {
    "mean": (op.mean(X), np.mean),
    "variance": (op.per_answer(X, features.variance), np.var),
    "first": (op.first_mean(X, 3), lambda x: x[:3].mean()),
    "last": (op.last_mean(X, 3), lambda x: x[-3:].mean()),
    "slope": (op.per_answer(X, features.slope), numpy_slope),
    "decayed_2": (op.decayed(X, 2), lambda x: numpy_decayed(x, 2)),
    "decayed_8": (op.decayed(X, 8), lambda x: numpy_decayed(x, 8)),
    "window_4": (op.window_peak(X, 4), lambda x: numpy_window(x, 4)),
    "window_1": (op.window_peak(X, 1), np.max),
    "length_normalised": (op.length_normalised(X, 0.25), lambda x: x.sum() / len(x) ** 0.25),
    "rate": (op.per_answer(X, ABOVE_1), lambda x: (x > 1).mean()),
}


@pytest.mark.parametrize("name", RESTATED)
@given(rows=answers)
def test_operators_agree_with_numpy(name, rows):
    expression, restated = RESTATED[name]
    expected = [restated(np.array(row, dtype=np.float32).astype(float)) for row in rows]
    np.testing.assert_allclose(apply(expression, rows), expected, rtol=1e-9, atol=1e-9)


WITHOUT_NUMPY = {
    "mean": (op.mean(X), one_by_one.mean(X)),
    "variance": (op.per_answer(X, features.variance), one_by_one.variance(X)),
    "first": (op.first_mean(X, 3), one_by_one.first_mean(X, 3)),
    "last": (op.last_mean(X, 3), one_by_one.last_mean(X, 3)),
    "slope": (op.per_answer(X, features.slope), one_by_one.slope(X)),
    "decayed": (op.decayed(X, 2), one_by_one.decayed(X, 2)),
    "window": (op.window_peak(X, 4), one_by_one.window_peak(X, 4)),
    "wide_window": (op.window_peak(X, 20), one_by_one.window_peak(X, 20)),
    "length_normalised": (
        op.length_normalised(X, 0.25),
        one_by_one.length_normalised(X, 0.25),
    ),
    "rate": (op.per_answer(X, ABOVE_1), one_by_one.rate(X, lambda x: x > 1)),
}


@pytest.mark.parametrize("name", WITHOUT_NUMPY)
def test_many_answers_agree_with_one_by_one(name, monkeypatch):
    monkeypatch.setattr(features, "BLOCK", 7)  # several blocks, the last one not full
    rng = np.random.default_rng(1)
    rows = [rng.exponential(1, size).tolist() for size in [1, 300, *rng.integers(1, 40, 100)]]
    found, expected = (apply(expression, rows) for expression in WITHOUT_NUMPY[name])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", WITHOUT_NUMPY)
def test_null_and_empty_lists_are_null_and_disturb_no_neighbour(name, monkeypatch):
    monkeypatch.setattr(features, "BLOCK", 2)
    expression, _ = WITHOUT_NUMPY[name]
    rows = [None, [3.0, 1.0, 2.0], [], [5.0] * 9, [], None, [0.5, 7.0], [4.0], []]
    filled = [row for row in rows if row]
    expected = iter(apply(expression, filled))
    assert apply(expression, rows) == [next(expected) if row else None for row in rows]
    assert apply(expression, [[], None]) == [None, None]
    assert apply(expression, []) == []


@pytest.mark.parametrize("name", WITHOUT_NUMPY)
def test_operators_are_expressions_in_slices_chunks_groups_and_lazy_frames(name):
    expression, _ = WITHOUT_NUMPY[name]
    frame = pl.DataFrame({"x": [[1.0, 4.0, 2.0], [3.0], [2.0, 9.0, 1.0, 0.0, 5.0], [6.0, 0.25]]})
    expected = frame.select(value=expression)["value"]
    assert frame[1:3].select(value=expression)["value"].equals(expected[1:3])
    chunked = pl.concat([frame[:1], frame[1:]], rechunk=False)
    assert chunked.select(value=expression)["value"].equals(expected)
    assert frame.lazy().select(value=expression).collect()["value"].equals(expected)
    doubled = frame.select(value=2 * expression - 1)["value"]
    assert doubled.to_list() == pytest.approx((2 * expected - 1).to_list())
    grouped = frame.with_columns(g=pl.Series([0, 1, 0, 1])).group_by("g", maintain_order=True)
    assert grouped.agg(value=expression)["value"].to_list() == [
        [expected[0], expected[2]],
        [expected[1], expected[3]],
    ]


@given(rows=answers, data=st.data())
def test_an_answers_features_do_not_depend_on_its_neighbours(rows, data):
    frame = pl.DataFrame(
        {
            "example_id": [str(i) for i in range(len(rows))],
            "surprisal": rows,
            "entropy": rows[::-1],
        },
        schema_overrides={"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)},
    ).filter(pl.col("surprisal").list.len() == pl.col("entropy").list.len())
    order = data.draw(st.permutations(range(frame.height)))
    shuffled = answer_features(frame[order]).sort("example_id")
    alone = pl.concat([answer_features(frame[i]) for i in range(frame.height)] or [shuffled])
    assert shuffled.equals(answer_features(frame).sort("example_id"))
    assert alone.sort("example_id").equals(shuffled)


@given(row=st.lists(values, min_size=1, max_size=30))
def test_every_feature_is_finite_even_for_one_token(row):
    frame = pl.DataFrame(
        {"example_id": ["a"], "surprisal": [row], "entropy": [row]},
        schema_overrides={"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)},
    )
    features = answer_features(frame).drop("example_id")
    assert all(dtype == pl.Float64 for dtype in features.dtypes)
    assert np.isfinite(features.to_numpy()).all()


@given(row=st.lists(values, min_size=4, max_size=30))
def test_a_peak_is_never_below_the_mean_and_a_window_never_above_the_maximum(row):
    (mean,), (peak,) = apply(op.mean(X), [row]), apply(op.window_peak(X, 4), [row])
    assert peak <= max(row) + 1e-9
    assert apply(op.window_peak(X, len(row)), [row])[0] == pytest.approx(mean)


def test_mixture_weights_must_sum_to_one():
    with pytest.raises(ValueError, match="sum to 1"):
        op.trace_risk(X, X, alpha=0.5)


def test_estimators_use_features_and_scores_that_exist():
    ids = {estimator.id for estimator in ESTIMATORS if not estimator.features}
    known = {f"features.{name}" for name in FEATURES} | {f"scores.{name}" for name in ids}
    for estimator in ESTIMATORS:
        assert set(estimator.inputs) <= known


@given(st.lists(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=12), min_size=1))
def test_a_peak_begins_where_its_window_does(rows):
    starts, peaks = apply(op.window_start(X, 4), rows), apply(op.window_peak(X, 4), rows)
    for row, start, peak in zip(rows, starts, peaks, strict=True):
        window = row[int(start) : int(start) + 4]
        assert len(window) == min(4, len(row))
        assert sum(window) / len(window) == pytest.approx(peak)


def test_of_equal_windows_the_first_is_the_peak():
    assert apply(op.window_start(X, 4), [[0, 1, 1, 1, 1, 1], [2.0] * 9, [3.0]]) == [1, 0, 0]


@given(st.lists(values, min_size=1, max_size=20))
def test_a_profile_is_the_slope_and_fit_of_the_line_through_the_surprisals(row):
    x = np.array([row], dtype=float)
    (found,) = features.r_squared(x)
    if len(row) < 3 or len(set(row)) == 1:
        assert found == 0
        return
    line = linregress(np.arange(len(row)), x[0])
    assert features.slope(x)[0] == pytest.approx(line.slope, abs=1e-9)
    assert found == pytest.approx(line.rvalue**2, abs=1e-6)


def features_of(surprisal, entropy):
    frame = pl.DataFrame({"example_id": ["a"], "surprisal": [surprisal], "entropy": [entropy]})
    return answer_features(frame).row(0, named=True)


def test_a_profile_by_hand():
    found = features_of([3.0, 2.0, 1.0, 0.0], [0.1] * 4)
    assert found["surprisal_slope"] == pytest.approx(-1)
    assert found["surprisal_r_squared"] == pytest.approx(1)
    # s = 0, 1, 0: slope 0, so that the line explains nothing.
    assert features_of([0.0, 1.0, 0.0], [0.1] * 3)["surprisal_r_squared"] == pytest.approx(0)
    two = features_of([2.0, 1.0], [0.1] * 2)
    assert (two["surprisal_slope"], two["surprisal_r_squared"]) == (-1, 0)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=20))
def test_confidences_on_logarithms_are_those_of_the_same_amounts(row):
    s, h = (np.array(column, dtype=np.float32).astype(float) for column in zip(*row, strict=True))
    found = features_of(s.tolist(), h.tolist())
    amounts = {
        "first3_entropy_log_conf": h[:3].mean(),
        "mean_entropy_log_conf": h.mean(),
        "decayed_entropy_log_conf_2": numpy_decayed(h, 2),
        "decayed_entropy_log_conf_4": numpy_decayed(h, 4),
        "decayed_surprisal_log_conf_2": numpy_decayed(s, 2),
        "decayed_surprisal_log_conf_4": numpy_decayed(s, 4),
        "total_surprisal_log_conf": s.sum(),
        "mean_surprisal_log_conf": s.mean(),
        "max_surprisal_log_conf": s.max(),
    }
    assert amounts.keys() == {name for name in FEATURES if "_log_conf" in name}
    for name, amount in amounts.items():
        assert found[name] == pytest.approx(-math.log(amount + 1e-9), abs=1e-9), name


def test_amounts_near_zero_stay_apart_on_logarithms():
    sure, surer, surest = (features_of([a, a], [a, a]) for a in (1e-5, 1e-8, 0.0))
    assert abs(sure["mean_entropy_conf"] - surer["mean_entropy_conf"]) < 1e-4
    for name in (one for one in FEATURES if "_log_conf" in one):
        assert sure[name] + 6 < surer[name] < surest[name] < 21
