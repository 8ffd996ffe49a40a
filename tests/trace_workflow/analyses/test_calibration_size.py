"""Calibration sizes: the run's own agrees with the main comparison, the others with scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.task_answers import ESTIMATORS, made_up, shuffled, value
from trace_workflow.analyses.calibration_size import SHARES, metrics_by_size
from trace_workflow.analyses.labelled_answers import raw_scores
from tracecal.fits.predictions import calibrate_all
from tracecal.statistics.metrics import all_metrics

SETTINGS = {"model": "m", "task": "t", "ece_bins": 15}


def by_size(answers, splits, share=0.35, estimators=ESTIMATORS):
    return metrics_by_size(
        answers, splits, estimators=estimators, method="platt", share=share, **SETTINGS
    )


@pytest.mark.parametrize("share", [0.35, 0.3])
def test_the_runs_own_share_is_the_main_comparison(share):
    answers, splits = made_up("t", share=share)
    predictions, _ = calibrate_all(answers, splits, ESTIMATORS, "platt")
    expected = all_metrics(
        predictions,
        answers.select("example_id", "correct"),
        raw_scores(answers),
        estimators=list(ESTIMATORS),
        splits=[0, 1, 2],
        **SETTINGS,
    )
    sizes = by_size(answers, splits, share)
    assert sizes.filter(calibration_share=share).drop("calibration_share").equals(expected)
    assert sizes["calibration_share"].unique().sort().to_list() == sorted({*SHARES, share})


@pytest.mark.parametrize("share", SHARES)
def test_each_share_refits_on_the_first_ranks(share):
    answers, splits = made_up("t", n=90)
    sizes = by_size(answers, splits)
    ranked = answers.join(splits.filter(split=1), on="example_id").sort("rank")
    features = ranked.select("features.a", "features.b").to_numpy()
    correct, first = ranked["correct"].to_numpy(), round(share * 90)
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
    model.fit(features[:first], correct[:first])
    probability = model.predict_proba(features[first:])[:, 1]
    where = {"calibration_share": share, "split": 1}
    plus = where | {"estimator": "trace_plus"}
    brier = brier_score_loss(correct[first:], probability)
    assert value(sizes, metric="brier", **plus) == pytest.approx(brier, abs=1e-6)
    auroc = roc_auc_score(correct[first:], probability)
    assert value(sizes, metric="auroc", **plus) == pytest.approx(auroc)
    raw = roc_auc_score(correct[first:], ranked["scores.seq_logp"].to_numpy()[first:])
    assert value(sizes, metric="auroc", estimator="seq_logp", **where) == pytest.approx(raw)
    assert set(sizes.filter(**where)["n"]) == {90 - first}


def test_row_order_changes_nothing():
    answers, splits = made_up("t")
    assert by_size(shuffled(answers), shuffled(splits)).equals(by_size(answers, splits))


def test_too_few_answers_for_a_share_leave_it_an_even_chance():
    answers, splits = made_up("t", n=8)
    sizes = by_size(answers, splits).filter(calibration_share=0.05, metric="brier")
    assert np.allclose(sizes["value"], 0.25)
    assert set(sizes["n"]) == {8}
