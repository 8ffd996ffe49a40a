"""Limits on the size of groups, by counting answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.calibration.groups import group_size_choices, largest_group


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_larger_groups_hold_at_most_a_fifth_and_no_smaller_size_does(sizes):
    sizes = np.array(sizes)
    limit = largest_group(sizes)
    assert sizes[sizes > limit].sum() <= 0.2 * sizes.sum()
    smaller = sizes[sizes < limit].max(initial=0)
    assert not smaller or sizes[sizes > smaller].sum() > 0.2 * sizes.sum()


def test_choices_leave_a_fifth_a_twentieth_and_nothing():
    sizes = np.repeat([1, 2, 3, 7], [60, 20, 3, 1])
    assert group_size_choices(sizes) == pytest.approx({2: 16 / 116, 7: 0})
    sizes = np.repeat([1, 2, 3, 7], [80, 20, 7, 1])
    assert group_size_choices(sizes) == pytest.approx({2: 28 / 148, 3: 7 / 148, 7: 0})
