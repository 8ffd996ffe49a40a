"""What labels could guarantee, by simulation: the populations drawn from, and the number needed."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tracecal.errors import InputError
from tracecal.guarantees import forecast
from tracecal.guarantees.error_rate import find_thresholds, min_groups
from tracecal.guarantees.forecast import (
    BinormalPopulation,
    LabelledAnswers,
    LabelledPopulation,
    normal_scores,
    questions_needed,
)
from tracecal.guarantees.sequential import NoMoreLabels, search_threshold

SETTINGS = {"draws": 5, "confidence": 0.9, "seed": 1}


def test_a_guess_draws_answers_of_its_accuracy_and_auroc_with_exact_probabilities():
    answers = BinormalPopulation(0.7, 0.85).draw(np.random.default_rng(0), 100_000)
    assert answers.correct.mean() == pytest.approx(0.7, abs=0.005)
    assert roc_auc_score(answers.correct, answers.probability) == pytest.approx(0.85, abs=0.005)
    for low in np.arange(0.05, 0.95, 0.1):
        rows = (answers.probability >= low) & (answers.probability < low + 0.1)
        assert answers.correct[rows].mean() == pytest.approx(
            answers.probability[rows].mean(), abs=0.02
        )


def test_scores_are_ranks_within_folds():
    """Worked by hand: 0.2, 0.5 and 0.5 of one fold are its ranks 1, 2.5 and 2.5 of 3."""
    probability, fold = np.array([0.5, 0.9, 0.2, 0.8, 0.5]), np.array([0, 1, 0, 1, 0])
    expected = ndtri([2 / 3, 3 / 4, 1 / 6, 1 / 4, 2 / 3])
    assert normal_scores(probability, fold) == pytest.approx(expected)


def test_the_curve_is_scikit_learns_and_its_spread_that_of_other_samples():
    rng = np.random.default_rng(0)
    fitted = []
    for _ in range(300):
        score = rng.normal(size=250)
        correct = rng.random(250) < expit(1 + 1.5 * score)
        labelled = np.arange(250), score, correct
        fitted.append(LabelledPopulation.from_labels(*labelled))
    # scikit-learn has one penalty for all weights: 1, of features that are scaled accordingly.
    scales = forecast.PRECISION**-0.5
    x = np.column_stack([np.ones(250), score, score**2 - 1]) * scales
    penalised = LogisticRegression(fit_intercept=False, tol=1e-10).fit(x, correct)
    assert fitted[-1].coefficients == pytest.approx(penalised.coef_[0] * scales, abs=1e-5)
    between = np.cov([item.coefficients for item in fitted], rowvar=False)
    stated = np.mean([item.covariance for item in fitted], axis=0)
    deviation = np.sqrt(np.diag(between))
    assert np.abs(stated - between).max() < 0.25 * np.outer(deviation, deviation).max()


def test_a_curve_is_finite_where_all_are_right():
    population = LabelledPopulation.from_labels(
        np.arange(40), np.linspace(-2, 2, 40), np.ones(40, dtype=bool)
    )
    sample = [
        population.draw(np.random.default_rng(seed), 500).correct.mean() for seed in range(50)
    ]
    # Uniform on [0, 1] before, the chance of a right answer would be 41 in 42 on average.
    assert 0.9 < np.mean(sample) < 0.99


def test_how_alike_the_answers_of_a_group_are():
    """Three groups of two with residuals 1 and 1, -1 and -1, 2 and -1, and one by itself, in any
    order: the mean of their products 1, 1 and -2 is 0; without the last 1, bounded at 0.9."""
    group, residual = np.array([2, 0, 1, 3, 0, 1, 2]), np.array([2.0, 1, -1, 7, 1, -1, -1])
    assert forecast._group_correlation(group, residual) == pytest.approx(0)
    assert forecast._group_correlation(group[group < 2], residual[group < 2]) == 0.9
    assert forecast._group_correlation(np.arange(3), np.ones(3)) == 0


def test_groups_that_are_right_or_wrong_as_a_whole_are_drawn_so_and_leave_more_open():
    rng = np.random.default_rng(1)
    group, score = np.repeat(np.arange(200), 3), rng.normal(size=600)
    whole = rng.random(200)[group] < expit(score * 0.3)
    guarantees = rng.random(600) < expit(score * 0.3)
    together, apart = (
        LabelledPopulation.from_labels(group, score, whole),
        LabelledPopulation.from_labels(group, score, guarantees),
    )
    assert together.correlation > 0.7 > 0.15 > apart.correlation
    assert np.trace(together.covariance) > 2 * np.trace(apart.covariance)
    sample = together.draw(rng, 5000)
    agree = np.diff(sample.correct.astype(int))[np.diff(sample.group) == 0] == 0
    assert agree.mean() > 0.8


@given(st.lists(st.integers(1, 4), min_size=2, max_size=8), st.integers(1, 30), st.integers(0, 9))
def test_groups_at_hand_are_drawn_whole(sizes, groups, seed):
    """Each answer's score says which group it is of, and which of its answers."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(group))  # a file's answers come in any order
    within = np.concatenate([np.arange(size) for size in sizes])
    scores = (group + within / 10)[order] / 2
    sample = LabelledPopulation.from_labels(group[order], scores, scores > 1).draw(rng, groups)
    assert len(np.unique(sample.group)) == groups
    for number in range(groups):
        values = 2 * ndtri(np.sort(sample.probability[sample.group == number]))
        first = int(values[0] + 0.05)
        assert np.allclose(values, first + np.arange(sizes[first]) / 10)


def certain(n, correct):
    score = ndtri((np.arange(n) + 0.5) / n)
    coefficients = np.array([40.0 if correct else -40.0, 0, 0])
    return LabelledPopulation(np.arange(n), score, coefficients, np.zeros((3, 3)), 0.0)


def test_right_answers_are_guaranteed_from_the_number_that_suffices_on():
    """Fewer than a hundred labels all test; they must be as many as suffice where none is wrong."""
    needed = min_groups(0.1, 0.1)
    sizes = [needed - 1, needed, 4 * needed]
    sample = forecast.simulate_draws(certain(40, True), sizes, error_rates=[0.1], **SETTINGS)
    summary = forecast.summarise_draws(sample)
    assert summary["guaranteed"].to_list() == [0, 1, 1]
    assert summary["median"].to_list() == [0, 1, 1]


def test_where_no_number_suffices_the_labels_at_hand_do_not_tell():
    population = certain(40, False)
    table = forecast.summarise_draws(
        forecast.simulate_draws(population, [40, 80], error_rates=[0.1], **SETTINGS)
    )
    assert questions_needed(forecast.POWER, table) is None
    sentence = forecast.describe_forecast(population, table, 0.1)
    assert "With 80 labelled questions" in sentence and "in 0 % of the simulated draws" in sentence
    assert "the labels at hand do not tell how many are needed" in sentence


def summary(*shares):
    return pl.DataFrame({"questions": [50, 100, 200, 400][: len(shares)], "guaranteed": shares})


def test_the_number_is_interpolated_along_the_running_maximum():
    """By hand: from .4 at 100 to .9 at 400 a share of .8 is four fifths of two doublings off."""
    table = summary(0.5, 0.4, 0.5, 0.9)
    assert questions_needed(0.8, table) == pytest.approx(200 * 2**0.75)
    assert questions_needed(0.5, table) == questions_needed(0.3, table) == pytest.approx(50)
    assert questions_needed(0.95, table) is None
    sentence = forecast.describe_forecast(BinormalPopulation(0.8, 0.8), table, 0.1)
    assert "About 340 labelled questions are needed for an error rate of at most 10 %" in sentence
    assert "in 50 % with 50, in 95 % with more than 400." in sentence


def test_labels_at_hand_that_guarantee_nothing_need_a_larger_number():
    """A fresh draw of as many would mostly do: the next number of the table, on every page."""
    table = summary(0.5, 0.85, 0.9, 0.95)
    assert questions_needed(0.8, table) < 100
    assert [questions_needed(0.8, table, n) for n in (20, 100, 273, 400)] == [
        questions_needed(0.8, table),
        200,
        400,
        None,
    ]
    population = replace(certain(40, True), at_hand=273)
    sentence = forecast.describe_forecast(population, table, 0.1)
    assert sentence.startswith("A fresh draw of your 273 has a guarantee in 80 % or more")
    assert "About 400 labelled questions are needed" in sentence


def test_fewer_labels_than_a_fit_takes_are_ranked_by_the_fixed_score():
    rng = np.random.default_rng(0)
    fitted, fixed = certain(40, True), certain(40, False)
    population = replace(fitted, few=fixed)
    assert not population.draw(rng, 99).correct.any()
    assert population.draw(rng, 100).correct.all()


def test_the_more_labels_the_nearer_is_their_fit_to_one_on_all_labels():
    """The error of a fit is inverse to its labels; to the labels at hand that of a fifth applies."""
    rng, fifth = np.random.default_rng(0), certain(40, True)
    population = replace(fifth, many=replace(fifth, coefficients=np.array([-40.0, 0, 0])))
    share = {n: population.draw(rng, n).correct.mean() for n in (30, 40, 50, 80, 1000)}
    assert share == {30: 1, 40: 1, 50: 1, 80: 0, 1000: 0}
    assert replace(population, is_fixed=True).draw(rng, 1000).correct.all()


def test_where_a_fixed_score_ranks_any_number_of_labels_none_fit():
    draw = replace(certain(40, True), is_fixed=True).draw(np.random.default_rng(0), 200)
    ranked = forecast.rank_draw(draw, 200)
    assert len(ranked.score) == 200 and ranked.fitted is None


def test_answers_without_a_score_are_never_kept_and_count_among_all():
    ranked = np.where(np.arange(80) < 60, ndtri((np.arange(80) + 0.5) / 60 % 1), np.nan)
    population = LabelledPopulation.from_labels(np.arange(80), ranked, np.arange(80) < 60)
    assert population.coefficients == pytest.approx(
        LabelledPopulation.from_labels(
            np.arange(60), ranked[:60], np.ones(60, dtype=bool)
        ).coefficients
    )
    simulated = forecast.simulate_draws(population, [400], 40, [0.2], 0.9, 0)
    (row,) = forecast.summarise_draws(simulated).iter_rows(named=True)
    assert row["high"] < 0.85 and row["median"] == pytest.approx(0.75, abs=0.05)
    assert row["unchecked"] == pytest.approx(0.75, abs=0.05)


def test_all_error_rates_are_tested_on_the_same_draws():
    population = BinormalPopulation(0.8, 0.85)
    together = forecast.forecast_tables(population, [0.1, 0.3], 0.9, 200, 10)
    single = [forecast.forecast_tables(population, [rate], 0.9, 200, 10)[0] for rate in (0.1, 0.3)]
    assert all(first.equals(second) for first, second in zip(together, single, strict=True))


def labelled_population(without_score):
    """Imitates 400 labelled answers, of which this share has no score."""
    rng = np.random.default_rng(7)
    score = rng.normal(size=400)
    correct = rng.random(400) < expit(1.2 + 1.5 * score)
    score[rng.random(400) < without_score] = np.nan
    return LabelledPopulation.from_labels(np.arange(400), score, correct)


@pytest.mark.parametrize(
    ("population", "rate"),
    [
        (BinormalPopulation(0.75, 0.85), 0.2),
        (BinormalPopulation(0.7, 0.8), 0.1),
        (labelled_population(0.0), 0.1),
        (labelled_population(0.1), 0.1),
        (labelled_population(0.3), 0.1),
    ],
)
def test_as_many_labels_as_a_search_is_said_to_ask_for_do_in_most_draws(population, rate):
    rng, draws = np.random.default_rng(5), 150
    enough, done = forecast.labels_to_ask(population, rate, 0.9), 0
    for _ in range(draws):
        answers, asked = population.draw(rng, 4000), []

        def is_wrong(index, correct=answers.correct, asked=asked):
            asked.append(index)
            if len(asked) > enough:
                raise NoMoreLabels
            return not correct[index]

        score = np.where(np.isnan(answers.probability), -np.inf, answers.probability)
        found = search_threshold(score, is_wrong, rate, 0.1, "finite")
        done += found.threshold is not None
    assert done / draws == pytest.approx(forecast.POWER, abs=0.12)
    assert forecast.labels_to_ask(population, 0.001, 0.9) is None


def test_what_nobody_checks_is_forecast_beside_what_is_kept():
    """With 60 labels at 10 % already half of the answers of a good score, and of the kept none."""
    population = BinormalPopulation(0.7, 0.9)
    drawn = forecast.simulate_draws(population, [60, 240], 40, [0.1], 0.9, 0)
    few, many = forecast.summarise_draws(drawn).iter_rows(named=True)
    assert few["unchecked"] > 0.35 > few["median"] and many["unchecked"] > few["unchecked"]
    sentence = forecast.describe_few(forecast.summarise_draws(drawn), 0.1)
    assert sentence.startswith("With 60 labelled questions people need not check about ")


def test_draws_depend_on_the_seed_alone():
    population = BinormalPopulation(0.8, 0.9)
    first, second = (
        forecast.simulate_draws(population, sizes, error_rates=[0.2], **SETTINGS)
        for sizes in ([50, 100], [100])
    )
    assert first.filter(pl.col("questions") == 100).equals(second)


def test_a_draw_is_tested_as_calibrate_tests_labels():
    """From a hundred on a fifth fits, and chooses where 600 labels begin; parts need that fifth."""
    rng = np.random.default_rng(2)
    population = BinormalPopulation(0.8, 0.85)
    for n, n_fit in ((80, 0), (200, 40), (800, 160)):
        drawn = population.draw(rng, n)
        fits, score, wrong = drawn.group < n_fit, drawn.probability, ~drawn.correct
        (test,) = find_thresholds(
            *(score[~fits], wrong[~fits], score[fits]),
            *([0.1], 0.1, (score[fits], wrong[fits])),
        )
        expected = 0.0 if test.threshold is None else np.mean(score[~fits] >= test.threshold)
        assert forecast.shares(forecast.rank_draw(drawn, n), [0.1], 0.1)[0.1][0] == expected
    groups = LabelledPopulation.from_labels(
        np.repeat(np.arange(60), 3), rng.normal(size=180), rng.random(180) < 0.98, of_parts=True
    )
    few, many = (forecast.rank_draw(groups.draw(rng, n), n, of_parts=True) for n in (99, 300))
    assert forecast.shares(few, [0.2], 0.1)[0.2] == (0, None)
    assert forecast.shares(many, [0.2], 0.1)[0.2][0] > 0.9


def test_a_score_that_ranks_the_wrong_way_round_is_turned_as_a_fit_would():
    answers = BinormalPopulation(0.7, 0.95).draw(np.random.default_rng(0), 300)
    wrong_way = LabelledAnswers(answers.group, 1 - answers.probability, answers.correct)
    shares = [
        forecast.shares(forecast.rank_draw(rows, 300), [0.1], 0.1)[0.1][0]
        for rows in (answers, wrong_way)
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.01) and shares[0] > 0.5


@pytest.mark.parametrize("accuracy, auroc", [(0, 0.8), (1, 0.8), (0.5, 0.5), (0.5, 1)])
def test_guesses_out_of_range_are_refused(accuracy, auroc):
    with pytest.raises(InputError, match="is not between"):
        BinormalPopulation(accuracy, auroc)
