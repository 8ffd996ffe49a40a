"""Every trace-only and beam estimator against an independent restatement in NumPy."""

from importlib import import_module

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.estimators.families import normalised
from tracecal.estimators.features import answer_features
from tracecal.estimators.registry import ESTIMATORS, module_of
from tracecal.estimators.scores import family_scores, join_scores

FAMILIES = dict.fromkeys(estimator.family for estimator in ESTIMATORS)


def scores_of(family):
    module = import_module(module_of(family))
    return getattr(module, "FAMILIES", {}).get(family, module).SCORES


FAMILY_SCORES = {family: scores_of(family) for family in FAMILIES}
token = st.tuples(st.floats(0, 15, width=32), st.floats(0, 10, width=32))
traces = st.lists(st.lists(token, min_size=1, max_size=20), min_size=1, max_size=5)


def slope(x):
    return np.polyfit(np.arange(len(x)), x, 1)[0] if len(x) > 1 else 0.0


def peak(x, w=4):
    return max(x[i : i + w].mean() for i in range(max(1, len(x) - w + 1)))


def decayed(x, lam=2.0):
    w = np.exp(-np.arange(len(x)) / lam)
    return (w * x).sum() / w.sum()


RESTATED = {
    "first_token_prob": lambda p, h: p[0],
    "mean_prob": lambda p, h: p.mean(),
    "len_norm_logp": lambda p, h: np.exp(np.log(p).mean()),
    "seq_logp": lambda p, h: np.prod(p),
    "min_prob": lambda p, h: p.min(),
    "mean_token_entropy": lambda p, h: -h.mean(),
    "max_token_entropy": lambda p, h: -h.max(),
    "high_prob_token_rate": lambda p, h: (p > 0.9).mean(),
    "first_k_entropy": lambda p, h: -h[:3].mean(),
    "last_k_entropy": lambda p, h: -h[-3:].mean(),
    "windowed_entropy": lambda p, h: -peak(h),
    "entropy_variance": lambda p, h: -h.var(),
    "entropy_slope": lambda p, h: -slope(h),
    "token_prob_slope": lambda p, h: slope(p),
    "length_alone": lambda p, h: -np.log(len(p)),
    "operator_d": lambda p, h: -decayed(h),
    "operator_m": lambda p, h: -peak(h),
    "operator_l": lambda p, h: np.log(p).sum() / len(p) ** 0.25,
    "trace": lambda p, h: np.exp(
        -(0.4 * decayed(h) + 0.4 * peak(h) - 0.2 * np.log(p).sum() / len(p) ** 0.25)
    ),
}


def trace_frame(rows):
    return pl.DataFrame(
        {
            "example_id": [f"{index:02}" for index in range(len(rows))],
            "surprisal": [[s for s, _ in row] for row in rows],
            "entropy": [[h for _, h in row] for row in rows],
        },
        schema_overrides={"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)},
    )


@given(rows=traces)
def test_trace_only_estimators_agree_with_numpy(rows):
    frame = trace_frame(rows)
    with_features = frame.join(answer_features(frame), on="example_id")
    for name, restated in RESTATED.items():
        family = next(one.family for one in ESTIMATORS if one.id == name)
        source = with_features if family == "trace" else frame
        scores = family_scores(source, FAMILY_SCORES[family], [name])[name]
        for score, row in zip(scores, rows, strict=True):
            s, h = np.array(row, dtype=np.float32).astype(float).T
            assert score == pytest.approx(restated(np.exp(-s), h), rel=1e-7, abs=1e-9), name


@given(rows=traces)
def test_ces_agrees_with_numpy_over_the_tokens_of_all_answers(rows):
    found = family_scores(trace_frame(rows), FAMILY_SCORES["ces"], ["ces"])["ces"]
    h = [np.array([h for _, h in row], dtype=np.float32).astype(float) for row in rows]
    reference = np.concatenate(h)
    for score, own in zip(found, h, strict=True):
        shares = [(reference <= value).mean() for value in (own.mean(), own.max())]
        assert score == pytest.approx(-np.sqrt(np.prod(shares)), rel=1e-12)


def test_ces_by_hand():
    # Of the five tokens 3 are at most 1 (mean of the first) and 4 at most 2 (its largest).
    rows = [[(0, 0.0), (0, 2.0)], [(0, 0.5), (0, 1.0), (0, 9.0)]]
    found = family_scores(trace_frame(rows), FAMILY_SCORES["ces"], ["ces"])["ces"]
    assert found.to_list() == pytest.approx([-np.sqrt(3 / 5 * 4 / 5), -np.sqrt(4 / 5)])


@given(
    rows=st.lists(
        st.lists(st.tuples(st.floats(-60, 0), st.integers(1, 20)), min_size=2, max_size=10),
        min_size=1,
        max_size=4,
    )
)
def test_beam_estimators_agree_with_numpy(rows):
    rows = [sorted(row, key=lambda one: -one[0] / one[1]) for row in rows]
    frame = pl.DataFrame(
        {
            "example_id": [str(index) for index in range(len(rows))],
            "beam_logprob": [[total for total, _ in row] for row in rows],
            "beam_length": [[length for _, length in row] for row in rows],
        },
        schema_overrides={"beam_length": pl.List(pl.Int32)},
    )
    scores = family_scores(normalised(frame), FAMILY_SCORES["beam"], list(FAMILY_SCORES["beam"]))
    for score, row in zip(scores.iter_rows(named=True), rows, strict=True):
        b = np.array([total / length for total, length in row])
        q = np.exp(b) / np.exp(b).sum()
        logq = b - np.log(np.exp(b).sum())
        assert score["beam_ratio"] == pytest.approx(np.exp(b[0] - b[-1]), rel=1e-9)
        assert score["beam_tail_thinness"] == pytest.approx((q**2).sum(), rel=1e-9)
        assert score["beam_entropy"] == pytest.approx((q * logq).sum(), rel=1e-9, abs=1e-12)


def test_of_two_beams_the_three_scores_order_answers_alike():
    gaps = [0.0, 0.01, 0.3, 1.0, 2.5]
    frame = pl.DataFrame(
        {
            "example_id": list("abcde"),
            "beam_logprob": [[-1.0, -1.0 - gap] for gap in gaps],
            "beam_length": [[1, 1]] * 5,
        }
    )
    scores = family_scores(normalised(frame), FAMILY_SCORES["beam"], list(FAMILY_SCORES["beam"]))
    for name in FAMILY_SCORES["beam"]:
        assert np.all(np.diff(scores[name].to_numpy()) > 0), name


def test_beams_far_apart_have_no_nan_entropy():
    frame = pl.DataFrame(
        {"example_id": ["a"], "beam_logprob": [[-1.0, -9000.0]], "beam_length": [[1, 1]]}
    )
    scores = family_scores(normalised(frame), FAMILY_SCORES["beam"], ["beam_entropy", "beam_ratio"])
    assert scores["beam_entropy"].to_list() == [0.0]
    assert scores["beam_ratio"].to_list() == [None], "infinite: undefined, not most confident"


def test_the_registry_and_the_family_modules_hold_the_same_estimators():
    registered, formulas = {}, {}
    for estimator in ESTIMATORS:
        module = module_of(estimator.family)
        formulas.setdefault(module, set()).update(FAMILY_SCORES[estimator.family])
        if not estimator.features:
            registered.setdefault(module, set()).add(estimator.id)
    assert registered == formulas


def test_undefined_scores_are_null_never_nan():
    frame = pl.DataFrame({"example_id": ["a", "b", "c"], "x": [1.0, float("nan"), float("inf")]})
    assert family_scores(frame, {"x": pl.col("x")}, ["x"])["x"].to_list() == [1.0, None, None]


def test_joined_scores_follow_the_ids_and_the_order():
    ids = pl.DataFrame({"example_id": ["a", "b"]})
    families = [
        pl.DataFrame({"example_id": ["b", "a"], "y": [2.0, 1.0]}),
        pl.DataFrame({"example_id": ["b"], "x": [4.0]}),
    ]
    joined = join_scores(ids, families, ["x", "y"])
    assert joined.columns == ["example_id", "x", "y"]
    assert joined.rows() == [("a", None, 1.0), ("b", 4.0, 2.0)]
    assert join_scores(ids, [], []).rows() == [("a",), ("b",)]


def test_estimators_of_a_family_are_scored_from_the_same_files():
    """The plan reads a family's files once, by the needs of its first estimator."""
    for family in FAMILIES:
        assert len({e.needs for e in ESTIMATORS if e.family == family and not e.features}) == 1
