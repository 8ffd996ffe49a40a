"""The sequence of thresholds that labels of their own choose."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracecal.guarantees.error_rate import SEQUENCE_START, fitted_sequence

LEVEL = 0.1


@settings(max_examples=50)
@given(
    score=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    n=st.integers(0, 500),
    rate=st.sampled_from([0.01, 0.05, 0.3, 0.9]),
)
def test_thresholds_fall_to_the_lowest_and_the_first_keeps_more_than_suffices(score, n, rate):
    thresholds = fitted_sequence(np.array(score), np.zeros(len(score), dtype=bool), n, rate, LEVEL)
    assert set(thresholds) <= set(score)
    assert (np.diff(thresholds) < 0).all() and thresholds[-1] == min(score)
    suffice = next(k for k in range(1, 1000) if (1 - rate) ** k <= LEVEL)
    first = np.mean(np.array(score) >= thresholds[0])
    assert first >= min(SEQUENCE_START * suffice / max(n, 1), 1) - 1e-9


def test_every_number_of_tested_answers_has_a_sequence():
    """However the steps from the first share to 1 are rounded."""
    score, right = np.linspace(0, 1, 40), np.zeros(40, dtype=bool)
    for n in range(1, 400):
        for rate in (0.05, 0.1, 0.2, 0.3):
            assert fitted_sequence(score, right, n, rate, LEVEL)[-1] == 0


def test_the_sequence_begins_where_the_labels_say_most():
    score = np.repeat([0.95, 0.9, 0.4], [10, 40, 50])
    wrong = np.isin(np.arange(100), [12, 20, 30]) | (np.arange(100) >= 60)
    # Errors of 0 of 10, 3 of 50 or 43 of 100: the second speaks loudest against 0.3.
    assert fitted_sequence(score, wrong, 260, 0.3, LEVEL).tolist() == [0.9, 0.4]
    # With none below the target, the lowest error rate comes first.
    assert fitted_sequence(score, np.arange(100) < 80, 260, 0.3, LEVEL).tolist() == [0.4]
