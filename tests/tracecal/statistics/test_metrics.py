"""Metrics against hand-computed cases, brute force and their properties."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from support import metrics_one_by_one as one_by_one
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import fit
from tracecal.statistics import probability_metrics
from tracecal.statistics import ranking_metrics as ranking
from tracecal.statistics.metrics import NAMES, accuracy_by_language, accuracy_row, all_metrics
from tracecal.statistics.ranking_metrics import single_auroc as auroc
from tracecal.statistics.splits import make_splits

scored = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def brier(probability, correct):
    return probability_metrics.brier(probability[None], correct[None])[0]


def ece(probability, correct, bins):
    return probability_metrics.ece(probability[None], correct[None], bins)[0]


def nll(probability, correct):
    return probability_metrics.nll(probability[None], correct[None])[0]


def aurc(score, correct):
    return ranking.aurc(ranking.wrong_by_rank(score[None], correct[None]))[0]


def prr(score, correct):
    return ranking.prr(ranking.wrong_by_rank(score[None], correct[None]))[0]


def arrays(rows):
    score, correct = zip(*rows, strict=True)
    return np.array(score, dtype=float), np.array(correct)


def test_hand_computed_brier_and_nll():
    probability, correct = np.array([0.9, 0.2]), np.array([True, True])
    assert brier(probability, correct) == pytest.approx((0.01 + 0.64) / 2)
    assert nll(probability, correct) == pytest.approx(-(np.log(0.9) + np.log(0.2)) / 2)
    assert nll(np.array([0.0]), np.array([True])) == pytest.approx(-np.log(np.finfo(float).eps))


def test_the_papers_constant_predictor_on_truthfulqa():
    # 86 of 817 right: a constant base-rate predictor has a Brier score of 0.0942 (section 4.2).
    correct = np.arange(817) < 86
    assert brier(np.full(817, 86 / 817), correct) == pytest.approx(0.0942, abs=5e-5)


def test_hand_computed_ece():
    # Bins of width 0.2: {0.1, 0.15} -> |0.125 - 0.5|, {0.95, 1.0} -> |0.975 - 1|.
    probability = np.array([0.1, 0.15, 0.95, 1.0])
    correct = np.array([True, False, True, True])
    assert ece(probability, correct, 5) == pytest.approx(0.5 * 0.375 + 0.5 * 0.025)


def test_debiased_ece_is_zero_on_average_where_probabilities_are_exact():
    draw = np.random.default_rng(3)
    probability = draw.uniform(size=(4000, 39))
    correct = draw.uniform(size=probability.shape) < probability
    raw, debiased = (
        formula(probability, correct, 15).mean()
        for formula in (probability_metrics.ece, probability_metrics.ece_debiased)
    )
    assert raw > 0.15, "39 answers in 15 bins"
    assert debiased == pytest.approx(0, abs=0.005)
    many = draw.uniform(size=(1, 200_000))
    wrong = draw.uniform(size=many.shape) < many / 2
    assert probability_metrics.ece_debiased(many, wrong, 15)[0] == pytest.approx(0.25, abs=0.005)


def test_debiased_ece_by_hand():
    # One bin of two answers at 0.5: |k - 1| is 1 in half of the cases, so 0.25 of 2 answers.
    probability, correct = np.array([[0.5, 0.5]]), np.array([[True, True]])
    assert probability_metrics.ece_debiased(probability, correct, 1)[0] == pytest.approx(0.5 - 0.25)
    sure = np.array([[1.0, 0.0]]), np.array([[True, False]])
    assert probability_metrics.ece_debiased(*sure, 15)[0] == 0


@given(
    rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40),
    bins=st.integers(1, 20),
)
def test_ece_agrees_with_a_loop_over_bins(rows, bins):
    probability, correct = arrays(rows)
    total = 0.0
    for index in range(bins):
        inside = (probability * bins >= index) & (
            (probability * bins < index + 1) | (index == bins - 1)
        )
        if inside.any():
            total += inside.mean() * abs(probability[inside].mean() - correct[inside].mean())
    assert ece(probability, correct, bins) == pytest.approx(total, abs=1e-12)


@given(rows=scored)
def test_auroc_is_the_mann_whitney_statistic(rows):
    score, correct = arrays(rows)
    u = mannwhitneyu(score[correct], score[~correct]).statistic
    assert auroc(score, correct) == pytest.approx(u / (correct.sum() * (~correct).sum()))


@given(
    rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40).filter(
        lambda rows: len({label for _, label in rows}) == 2
    )
)
def test_scikit_learn_measures_the_same(rows):
    probability, correct = arrays(rows)
    for ours, theirs in ((brier, brier_score_loss), (nll, log_loss), (auroc, roc_auc_score)):
        assert ours(probability, correct) == pytest.approx(theirs(correct, probability), abs=1e-12)


@given(rows=scored)
def test_auroc_survives_monotone_maps_and_turns_with_the_sign(rows):
    score, correct = arrays(rows)
    assert auroc(np.exp(score / 3) - 7, correct) == pytest.approx(auroc(score, correct))
    assert auroc(-score, correct) == pytest.approx(1 - auroc(score, correct))


def test_pairs_within_folds_are_those_that_scikit_learn_counts():
    rng = np.random.default_rng(1)
    score, fold = rng.integers(0, 6, 90).astype(float), rng.integers(0, 4, 90)
    correct = rng.random(90) < 0.4 + score / 20
    pairs = [(~correct[fold == one]).sum() * correct[fold == one].sum() for one in range(4)]
    areas = [roc_auc_score(correct[fold == one], score[fold == one]) for one in range(4)]
    expected = np.average(areas, weights=pairs)
    ones, same = np.ones((1, 90)), np.zeros(90)
    assert ranking.auroc_within(score, correct, ones, fold).item() == pytest.approx(expected)
    whole = ranking.weighted_auroc(score, correct, ones)
    assert ranking.auroc_within(score, correct, ones, same) == pytest.approx(whole)
    # A weight of two is an answer twice; a fold of one class has no pairs.
    counts = rng.integers(0, 3, (1, 90))
    again = np.repeat(np.arange(90), counts[0])
    expected = ranking.auroc_within(
        score[again], correct[again], np.ones((1, len(again))), fold[again]
    )
    assert ranking.auroc_within(score, correct, counts, fold) == pytest.approx(expected)
    one_class = np.where(correct, 0, 1)
    assert np.isnan(ranking.auroc_within(score, correct, ones, one_class)).all()


def test_probabilities_of_several_folds_do_not_rank_against_one_another():
    """A score that says nothing: what a fit predicts for a fold is high where its labels are low."""
    rng = np.random.default_rng(2)
    pooled, within = [], []
    for _ in range(60):
        score, correct, fold = rng.normal(size=60), rng.random(60) < 0.8, np.arange(60) % 5
        probability = np.empty(60)
        for one in range(5):
            seen = fold != one
            fitted = fit(score[seen, None], correct[seen], "platt")
            probability[~seen] = fitted.predict(score[~seen, None])
        ones = np.ones((1, 60))
        pooled.append(ranking.weighted_auroc(probability, correct, ones).item())
        within.append(ranking.auroc_within(probability, correct, ones, fold).item())
    assert np.mean(pooled) < 0.42
    error = np.std(within) / np.sqrt(len(within))
    assert abs(np.mean(within) - 0.5) < 3 * error < 0.06


@pytest.mark.parametrize("labels", [[True, True], [False, False], []])
def test_auroc_of_one_class_is_undefined(labels):
    assert auroc(np.arange(len(labels), dtype=float), np.array(labels, dtype=bool)) is None


def test_hand_computed_aurc():
    # Most confident first: right, wrong, right -> error rates 0, 1/2, 1/3.
    assert aurc(np.array([3.0, 2.0, 1.0]), np.array([True, False, True])) == pytest.approx(5 / 18)


@given(rows=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_tied_aurc_is_the_mean_over_the_orders_of_the_ties(rows):
    score, correct = arrays(rows)
    values = []
    for order in itertools.permutations(range(len(rows))):
        ranked = score[list(order)]
        if (np.diff(ranked) <= 0).all():
            wrong = ~correct[list(order)]
            values.append((np.cumsum(wrong) / np.arange(1, len(rows) + 1)).mean())
    assert aurc(score, correct) == pytest.approx(np.mean(values))


def rejection_area(score, correct):
    """Mean accuracy among the k most confident: lm-polygraph's area under the rejection curve."""
    kept = correct[np.argsort(-score, kind="stable")]
    return np.mean([kept[:k].mean() for k in range(1, len(kept) + 1)])


def test_prr_is_lm_polygraphs_normalised_rejection_area():
    rng = np.random.default_rng(0)
    score = rng.normal(size=200)
    correct = rng.random(200) < 1 / (1 + np.exp(-score))
    chance = np.mean([rejection_area(rng.random(200), correct) for _ in range(4000)])
    perfect = rejection_area(correct + 0.0, correct)
    expected = (rejection_area(score, correct) - chance) / (perfect - chance)
    assert prr(score, correct) == pytest.approx(expected, abs=0.01), "lm-polygraph draws chance"
    exact = (rejection_area(score, correct) - correct.mean()) / (perfect - correct.mean())
    assert prr(score, correct) == pytest.approx(exact, abs=1e-12)


def test_hand_computed_prr():
    # Accuracies 1, 1/2, 2/3 against 2/3 throughout at random and 1, 1, 2/3 at best.
    given, chance, perfect = (1 + 1 / 2 + 2 / 3) / 3, 2 / 3, (2 + 2 / 3) / 3
    found = prr(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]))
    assert found == pytest.approx((given - chance) / (perfect - chance))


@given(rows=scored)
def test_prr_is_one_at_best_and_zero_for_a_constant(rows):
    score, correct = arrays(rows)
    assert prr(correct + 0.0, correct) == pytest.approx(1)
    assert prr(np.zeros(len(correct)), correct) == pytest.approx(0, abs=1e-12)
    assert prr(score, correct) <= 1 + 1e-12
    assert prr(np.exp(score / 3) - 7, correct) == pytest.approx(prr(score, correct))


@pytest.mark.parametrize("labels", [[True] * 3, [False] * 3, []])
def test_prr_of_one_class_is_undefined(labels):
    assert np.isnan(prr(np.arange(len(labels), dtype=float), np.array(labels, dtype=bool)))


@given(rows=scored, seed=st.integers(0, 100))
def test_row_order_changes_no_metric(rows, seed):
    score, correct = arrays(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    for metric in (brier, nll, auroc, aurc, prr, lambda p, c: ece(p, c, 15)):
        before = metric(score / 8, correct)
        assert metric(score[order] / 8, correct[order]) == pytest.approx(before, abs=1e-12)


def measured(**changed):
    ids = ["a", "b", "c", "d"]
    arguments = {
        "predictions": pl.DataFrame(
            {
                "estimator": ["s"] * 4 + ["learned"] * 4,
                "split": [0, 0, 1, 1] * 2,
                "example_id": ["a", "b", "c", "d"] * 2,
                "probability": [0.5, 0.5, 0.25, 0.75, 0.75, 0.25, 0.5, 0.5],
            }
        ),
        "answers": pl.DataFrame({"example_id": ids, "correct": [True, False, True, True]}),
        "scores": pl.DataFrame({"example_id": ids, "s": [4.0, 3.0, 2.0, 1.0]}),
        "model": "m",
        "task": "t",
        "estimators": ["s", "learned", "absent"],
        "splits": [0, 1],
        "ece_bins": 15,
    } | changed
    return all_metrics(**arguments)


def value(metrics, estimator, split, metric):
    return (
        metrics.filter(estimator=estimator, split=split, metric=metric).select("value", "n").row(0)
    )


def test_every_estimator_split_and_metric_has_one_row():
    metrics = measured()
    assert metrics.height == 3 * 2 * len(NAMES)
    assert metrics.select("estimator", "split", "metric").is_unique().all()


def test_auroc_ranks_the_score_where_there_is_one_else_the_probability():
    metrics = measured()
    assert value(metrics, "s", 0, "auroc") == (1.0, 2), "by the score; the probabilities tie"
    assert value(metrics, "learned", 0, "auroc") == (1.0, 2)


def test_calibrated_auroc_ranks_the_probability_of_every_estimator():
    metrics = measured()
    assert value(metrics, "s", 0, "auroc_calibrated") == (0.5, 2), "the probabilities tie"
    assert value(metrics, "s", 1, "auroc_calibrated") == (None, 2)
    assert value(metrics, "learned", 0, "auroc_calibrated") == (1.0, 2)


def test_metrics_of_many_sets_are_those_of_each():
    rng = np.random.default_rng(5)
    ids = [f"e{place:03}" for place in range(300)]
    coarse = rng.integers(0, 9, 300) / 3  # ties
    answers = pl.DataFrame(
        {
            "example_id": ids,
            "correct": rng.random(300) < 1 / (1 + np.exp(coarse - 1)),
            "scores.wrong_way": coarse,
            "scores.some": rng.normal(size=300),
        }
    ).with_columns(
        pl.when(pl.Series(rng.random(300)) > 0.2).then("scores.some").alias("scores.some")
    )
    estimators = {
        "some": ["scores.some"],
        "both": ["scores.wrong_way", "scores.some"],
        "wrong_way": ["scores.wrong_way"],
    }
    alone = pl.DataFrame({"example_id": ids, "group_id": ids})
    splits = make_splits(alone, "task", 1, 3, 0.35)
    predictions, _ = calibrate_all(answers, splits, estimators, "platt")
    raw = answers.rename(lambda name: name.removeprefix("scores."))
    found = measured(
        predictions=predictions.sample(fraction=1, shuffle=True, seed=1),
        answers=answers.select("example_id", "correct").reverse(),
        scores=raw.select("example_id", "some", "wrong_way"),
        estimators=list(estimators),
        splits=[0, 1, 2],
    )
    for name, split in itertools.product(estimators, range(3)):
        part = predictions.filter(estimator=name, split=split).join(raw, on="example_id")
        probability, correct = part["probability"].to_numpy(), part["correct"].to_numpy()
        score = part[name].to_numpy() if name in part.columns else probability
        for metric, expected in one_by_one.metrics(probability, score, correct, 15).items():
            assert value(found, name, split, metric) == (
                pytest.approx(expected, abs=1e-12),
                len(correct),
            ), metric
    mean = found.group_by("estimator", "metric").agg(pl.col("value").mean())
    areas = {
        metric: mean.filter(estimator="wrong_way", metric=metric)["value"].item()
        for metric in ("auroc", "auroc_calibrated")
    }
    assert areas["auroc"] < 0.45 < 0.55 < areas["auroc_calibrated"]
    assert sum(areas.values()) == pytest.approx(1), "the fit turns it round in every split"


def test_one_class_and_no_prediction_are_null_and_counted():
    metrics = measured()
    assert value(metrics, "s", 1, "auroc") == (None, 2)
    assert value(metrics, "s", 1, "brier") == (pytest.approx((0.5625 + 0.0625) / 2), 2)
    for metric in NAMES:
        assert value(metrics, "absent", 0, metric) == (None, 0)


def test_accuracy_counts():
    judged = pl.DataFrame({"example_id": list("abcd"), "correct": [True, False, False, False]})
    questions = pl.DataFrame({"role": ["evaluation"] * 4 + ["unanswered", "training"]})
    assert accuracy_row(judged, questions, "m", "t").row(0) == ("m", "t", 4, 1, 0.25, 1, 0, 0)
    lacking = questions.with_columns(lacks=pl.Series(["x", None, "x", None, None, "x"]))
    assert accuracy_row(judged, lacking, "m", "t")["without_entropy"].to_list() == [2]
    ends = judged.with_columns(finish_reason=pl.Series(["length", "eos", "length", None]))
    assert accuracy_row(ends, questions, "m", "t")["cut"].to_list() == [2]


def test_right_answers_are_counted_by_language_where_there_are_several():
    judged = pl.DataFrame({"example_id": list("abc"), "correct": [True, False, True]})
    languages = pl.DataFrame(
        {"example_id": list("cab"), "language": ["zh", "de", "de"], "role": "evaluation"}
    )
    found = accuracy_by_language(judged, languages, "m", "t")
    assert found.rows() == [
        ("m", "t", 2, 1, 0.5, 0, 0, 0, "de"),
        ("m", "t", 1, 1, 1.0, 0, 0, 0, "zh"),
    ]
    one = languages.with_columns(language=pl.lit("de"))
    assert accuracy_by_language(judged, one, "m", "t").is_empty()
