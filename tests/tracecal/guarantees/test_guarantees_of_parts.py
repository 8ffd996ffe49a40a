"""Guarantees for parts of answers: bets on documents, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.guarantees.part_tests import PartScores, RankedParts, betting_test, most_parts

LEVEL = 0.1


def parts(sizes, score):
    document = np.repeat(np.arange(len(sizes)), sizes)
    return PartScores(np.asarray(score, dtype=float), document, np.repeat(sizes, sizes))


def bets_on(labelled, wrong, unlabelled, most, rate):
    ranked = RankedParts(labelled, wrong, unlabelled, most)
    return ranked.test([rate], LEVEL)[0]


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_larger_documents_hold_at_most_a_fifth_and_no_smaller_limit_does(sizes):
    sizes = np.array(sizes)
    limit = most_parts(sizes)
    assert sizes[sizes > limit].sum() <= 0.2 * sizes.sum()
    smaller = sizes[sizes < limit].max(initial=0)
    assert not smaller or sizes[sizes > smaller].sum() > 0.2 * sizes.sum()


def test_a_document_counts_with_its_parts_and_unlabelled_ones_with_the_mean():
    scores = PartScores(
        np.array([0.9, 0.1, 0.9, 0.5, 0.5]), np.array([0, 0, 1, 2, 2]), np.array([4, 4, 1, 2, 2])
    )
    kept = scores.totals(scores.is_kept(np.array([0.5, 0.0])), 4)
    # Two of four are labelled, one of them kept; a single part; a pair.
    assert kept.tolist() == [[0.5, 1.0], [0.25, 0.25], [0.5, 0.5]]


def test_documents_are_tested_by_bets_from_quantiles_of_unlabelled_scores():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 6, 200)
    unlabelled = parts(sizes, rng.random(sizes.sum()))
    labelled = parts(sizes, rng.random(sizes.sum()))
    wrong = rng.random(sizes.sum()) > 0.55 + labelled.score / 2
    tested = bets_on(labelled, wrong, unlabelled, 5, 0.3)
    # Fixed sequence by hand: 2 % quantiles, from 3 l = 19.4 documents' weight on.
    quantiles = np.sort(unlabelled.score)[::-1][
        [int(np.ceil(k * len(unlabelled.score) / 50)) - 1 for k in range(1, 51)]
    ]

    def totals(scores, values):
        return np.bincount(scores.document, weights=values) / 5

    guaranteed = []
    for value in quantiles:
        weight = totals(unlabelled, (unlabelled.score >= value) * 1.0).mean()
        if 200 * weight < 3 * np.log(0.1) / np.log(0.7):
            continue
        excess = totals(labelled, (labelled.score >= value) * (wrong - 0.3))
        if not betting_test(excess[:, None], 0.3, LEVEL)[0]:
            break
        guaranteed.append(value)
    assert tested.guaranteed == pytest.approx(tuple(guaranteed))
    assert len(guaranteed) > 5
    is_kept = labelled.score >= tested.threshold
    assert (tested.kept, tested.wrong) == (is_kept.sum(), (is_kept & wrong).sum())


def test_larger_documents_do_not_test():
    sizes = np.array([2] * 120 + [20] * 5)
    scores = parts(sizes, np.linspace(0, 1, sizes.sum()))
    wrong = scores.size == 20
    tested = bets_on(scores, wrong, scores, 2, 0.2)
    assert (tested.n, tested.wrong) == (240, 0)
    assert RankedParts(scores, wrong, scores, 2).n_tested == 120
    assert tested.threshold is not None
    assert bets_on(scores, wrong, scores, 20, 0.2).threshold is None
    assert bets_on(scores, wrong, scores, 1, 0.2).n == 0


def test_parts_need_unlabelled_ones_and_say_how_many():
    scores = parts(np.full(60, 2), np.linspace(0, 1, 120))
    right = np.zeros(120, dtype=bool)
    few = bets_on(scores, right, parts([2] * 9, np.zeros(18)), 2, 0.2)
    assert few.reason == (
        "guarantees for parts need 20 unlabelled ones, which choose the thresholds to test; there "
        "are 18"
    )
    assert bets_on(scores, right, scores, 2, 0.2).threshold == pytest.approx(0, abs=1e-12)


def test_a_recall_is_tested_by_bets_from_the_lowest_threshold_up():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 5, 150)
    labelled = parts(sizes, rng.random(sizes.sum()))
    unlabelled = parts(np.ones(200, dtype=int), np.arange(200) / 200)
    correct = rng.random(sizes.sum()) < labelled.score
    ranked = RankedParts(labelled, ~correct, unlabelled, 4)
    passed = []
    for value in np.arange(0, 200, 4) / 200:
        dropped = correct * (labelled.score < value)
        excess = np.bincount(labelled.document, weights=dropped - 0.2 * correct) / 4
        if not betting_test(excess[:, None], 0.2, LEVEL)[0]:
            break
        passed.append(value)
    assert ranked.find_recall_threshold(0.8, LEVEL) == pytest.approx(passed[-1])
    assert passed[-1] > 0.1
    none = parts(np.ones(0, dtype=int), np.empty(0))
    without = RankedParts(labelled, ~correct, none, 4)
    assert without.find_recall_threshold(0.8, LEVEL) is None
