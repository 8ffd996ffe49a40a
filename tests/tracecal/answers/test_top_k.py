"""Entropy bounds from the k most likely tokens, against whole distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as shannon

from tracecal.answers.trace import Rounding, detect_rounding, entropy_bounds

weights = st.lists(st.floats(1e-9, 1.0), min_size=2, max_size=40)


def cut(p, k):
    return np.log(np.sort(p)[::-1][:k]).tolist()


@given(weights=weights, k=st.integers(1, 40), sharpness=st.floats(0.1, 8))
def test_the_bounds_always_hold_the_entropy(weights, k, sharpness):
    p = np.array(weights) ** sharpness
    p = p[p > 0] / p.sum()
    found = entropy_bounds(cut(p, k), len(p))
    assert found.lower <= shannon(p) <= found.upper
    assert found.lower - 1e-9 <= found.middle <= found.upper + 1e-9


def test_the_bounds_in_numbers_worked_out_by_hand():
    # p = .5, .2, tail .3 over 8 tokens: below .2 + .1, above .3 / 8 each.
    found = entropy_bounds([math.log(0.5), math.log(0.2)], 10, tolerance=0)
    assert found.lower == pytest.approx(shannon([0.5, 0.2, 0.2, 0.1]))
    assert found.upper == pytest.approx(shannon([0.5, 0.2, *[0.3 / 8] * 8]))
    assert found.middle == pytest.approx((found.lower + found.upper) / 2)


@given(top=st.floats(0.05, 1.0), tokens=st.integers(2, 50))
def test_the_upper_bound_is_attained_by_an_even_tail(top, tokens):
    p = np.array([top, *[(1 - top) / tokens] * tokens])
    assert entropy_bounds([math.log(top)], tokens + 1, tolerance=0).upper == pytest.approx(
        shannon(p), abs=1e-12
    )


@given(top=st.floats(0.05, 1.0))
def test_the_lower_bound_is_attained_by_the_fewest_tokens(top):
    whole = math.floor(1 / top)
    p = np.array([*[top] * whole, max(1 - whole * top, 0)])
    assert entropy_bounds([math.log(top)], 1000, tolerance=0).lower == pytest.approx(
        shannon(p), abs=1e-9
    )


def test_a_whole_distribution_leaves_nothing_open():
    p = np.array([0.6, 0.3, 0.1])
    found = entropy_bounds(np.log(p).tolist(), 3)
    assert found.middle == pytest.approx(shannon(p), abs=1e-12)
    assert found.upper - found.lower < 2e-5


def test_single_precision_does_not_put_the_entropy_outside():
    rng = np.random.default_rng(0)
    for sharpness in np.linspace(0.5, 12, 60):
        logits = (rng.normal(size=5000) * sharpness).astype(np.float32)
        p = np.exp(logits.astype(float) - logits.max())
        p /= p.sum()
        rounded = np.log(p).astype(np.float32)
        for k in (1, 5, 20):
            found = entropy_bounds(np.sort(rounded)[::-1][:k].tolist(), 5000)
            assert found.lower <= np.float32(shannon(p)) <= found.upper


def test_a_token_added_to_the_list_does_not_cap_the_others():
    # .3 is the chosen one and was not among the likeliest: another may have up to .6.
    p = [0.6, 0.3, 0.1]
    found = entropy_bounds([math.log(0.3)], 3, cap=1.0)
    assert found.lower <= shannon(p) <= found.upper
    assert found.lower < entropy_bounds([math.log(0.3)], 3).lower


def test_a_log_probability_near_the_smallest_number_is_bounded():
    """exp(-735) is so small that the tail's quotient by it overflows."""
    for value in (-735.0, -744.0, -746.0):
        found = entropy_bounds([-0.5, value], 100)
        assert 0 <= found.lower <= found.middle <= found.upper < math.log(100)


@given(
    weights=weights,
    k=st.integers(1, 40),
    sharpness=st.floats(0.1, 8),
    places=st.integers(1, 5),
)
def test_bounds_of_rounded_log_probabilities_hold_the_entropy(weights, k, sharpness, places):
    p = np.array(weights) ** sharpness
    p = p[p > 0] / p.sum()
    rounded = np.minimum(np.round(cut(p, k), places), 0.0).tolist()
    found = entropy_bounds(rounded, len(p), rounding=Rounding(0.5 * 10.0**-places))
    assert found.lower <= shannon(p) <= found.upper
    assert found.lower <= found.middle <= found.upper


@given(weights=weights, k=st.integers(1, 40), sharpness=st.floats(0.1, 8))
def test_coarse_inputs_never_put_the_lower_bound_above_the_upper(weights, k, sharpness):
    p = np.array(weights) ** sharpness
    p = p[p > 0] / p.sum()
    found = entropy_bounds(np.minimum(np.round(cut(p, k), 1), 0.0).tolist(), len(p))
    assert found.lower <= found.middle <= found.upper


def test_bfloat16_is_detected_and_its_bounds_hold_the_entropy():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    missed = 0
    for _ in range(200):
        exact = (torch.randn(120, generator=generator) * 4).log_softmax(-1)
        rounded = exact.bfloat16().float().topk(100).values.tolist()
        rounding = detect_rounding(rounded)
        assert rounding == Rounding(relative=2.0**-8)
        truth = shannon(exact.double().exp().numpy())
        found = entropy_bounds(rounded, 120, rounding=rounding)
        assert found.lower <= truth <= found.upper
        narrow = entropy_bounds(rounded, 120)
        missed += not narrow.lower <= truth <= narrow.upper
    assert missed  # without the setting the bounds would be wrong


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-0.1234, -2.5, 0.0], Rounding(absolute=0.00005)),
        (np.float32(np.arange(1, 9) / -100).tolist(), Rounding(absolute=0.005)),
        ([-0.5, -0.25, 0.0], Rounding(absolute=0.00005)),  # too few to say that it is coarser
        ([-0.12345678, -3.7654321], Rounding()),
        ([0.0, 0.0], Rounding()),
        ([], Rounding()),
    ],
)
def test_rounding_is_detected(values, expected):
    found = detect_rounding(values)
    assert found.absolute == pytest.approx(expected.absolute)
    assert found.relative == expected.relative
