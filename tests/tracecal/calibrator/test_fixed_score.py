"""The fixed score against its definition, on traces of its own."""

import numpy as np
import polars as pl
import pytest
from scipy.special import logit
from scipy.stats import zscore

from tracecal.calibrator.answer_ranking import (
    AMOUNTS,
    MEAN_SURPRISAL,
    fit_fixed_score,
)
from tracecal.estimators.features import compute_inputs
from tracecal.fits.fits import probabilities

WITH_ENTROPY = [name for name in AMOUNTS if "entropy" in name]


def make_inputs(n, entropy=True, seed=0):
    rng = np.random.default_rng(seed)
    surprisal = [rng.exponential(size=rng.integers(1, 9)) for _ in range(n)]
    answers = pl.DataFrame(
        {
            "example_id": [str(number) for number in range(n)],
            "surprisal": surprisal,
            "entropy": [values + 0.1 if entropy else None for values in surprisal],
        },
        schema_overrides={"entropy": pl.List(pl.Float64)},
    )
    return answers, compute_inputs(answers, AMOUNTS)


def scores(fixed, inputs):
    return probabilities(inputs.select(fixed.inputs), [fixed.fit])[0]


def test_the_amounts_are_nine_or_five_without_entropies():
    assert len(AMOUNTS) == 9
    assert len(fit_fixed_score(make_inputs(150)[1]).inputs) == 9
    five = fit_fixed_score(make_inputs(150, entropy=False)[1]).inputs
    assert set(five) == set(AMOUNTS) - set(WITH_ENTROPY) and len(five) == 5


def test_the_score_is_the_mean_of_the_standardised_amounts():
    _, inputs = make_inputs(200)
    score = scores(fit_fixed_score(inputs), inputs)
    assert logit(score) == pytest.approx(zscore(inputs.select(AMOUNTS).to_numpy()).mean(axis=1))


@pytest.mark.parametrize("n", [0, 99])
def test_few_unlabelled_answers_leave_the_mean_surprisal(n):
    answers, inputs = make_inputs(120)
    score = fit_fixed_score(inputs.head(n))
    assert score.inputs == (MEAN_SURPRISAL,)
    expected = [
        -np.log(sum(surprisal) / len(surprisal) + 1e-9) for surprisal in answers["surprisal"]
    ]
    assert logit(scores(score, inputs)) == pytest.approx(expected)


def test_an_amount_that_does_not_vary_is_left_out():
    _, inputs = make_inputs(150)
    constant = inputs.with_columns(pl.lit(3.3).alias(AMOUNTS[0]))
    assert fit_fixed_score(constant).inputs == AMOUNTS[1:]
    none_varies = inputs.with_columns(pl.lit(0.1).alias(name) for name in AMOUNTS)
    assert fit_fixed_score(none_varies).inputs == (MEAN_SURPRISAL,)


def test_rare_gaps_leave_answers_out_and_common_ones_the_amount():
    _, inputs = make_inputs(200)
    number = pl.int_range(200)

    def without_entropy(n):
        kept = (pl.when(number >= n).then(pl.col(name)).alias(name) for name in WITH_ENTROPY)
        return inputs.with_columns(kept)

    rare = fit_fixed_score(without_entropy(10))
    assert rare.inputs == AMOUNTS
    assert np.isnan(scores(rare, without_entropy(10))).nonzero()[0].tolist() == [*range(10)]
    assert len(fit_fixed_score(without_entropy(60)).inputs) == 5
