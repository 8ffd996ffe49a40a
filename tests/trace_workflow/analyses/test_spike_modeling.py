"""One pooled calibrator per feature set and split, restated with scikit-learn."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trace_workflow.analyses.spike_modeling import FEATURE_SETS, spike_modeling
from tracecal.statistics.splits import make_splits

COLUMNS = sorted({column for columns in FEATURE_SETS.values() for column in columns})


def made(n=120, seed=0, correct=None):
    rng = np.random.default_rng(seed)
    frames, splits = [], []
    for task in ("a", "b"):
        ids = [f"e{i}" for i in range(n)]
        x = {name: rng.normal(size=n) for name in COLUMNS}
        wrong = x["mean_risk"] + x["spike_gap"] + rng.normal(size=n) > (task == "a")
        judged = ~wrong if correct is None else [correct] * n
        frames.append(pl.DataFrame({"task": task, "example_id": ids, "correct": judged, **x}))
        alone = pl.DataFrame({"example_id": ids, "group_id": ids})
        of_task = make_splits(alone, task, 1, 3, 0.35)
        splits.append(of_task.select("example_id", "split", "part").with_columns(task=pl.lit(task)))
    return pl.concat(frames), pl.concat(splits)


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_values_are_those_of_scikit_learn_on_pooled_tasks(name):
    answers, splits = made()
    found = spike_modeling(answers, splits, "platt")
    part = splits.filter(split=1).join(answers, on=["task", "example_id"])
    fitted, evaluated = part.filter(part="calibration"), part.filter(part="evaluation")
    columns = list(FEATURE_SETS[name])
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
    model.fit(fitted.select(columns).to_numpy(), fitted["correct"].to_numpy())
    probability = model.predict_proba(evaluated.select(columns).to_numpy())[:, 1]
    mine = dict(found.filter(features=name, split=1).select("metric", "value").iter_rows())
    correct = evaluated["correct"].to_numpy()
    assert mine["auroc"] == pytest.approx(roc_auc_score(correct, probability), abs=1e-6)
    assert mine["brier"] == pytest.approx(brier_score_loss(correct, probability), abs=1e-6)
    assert set(found["n"]) == {2 * 78}


def test_each_set_split_and_metric_has_one_row():
    found = spike_modeling(*made(), "platt")
    assert found.height == len(FEATURE_SETS) * 3 * 2
    assert found.select("features", "split", "metric").is_unique().all()


def test_without_answers_every_value_is_null():
    answers, splits = made()
    found = spike_modeling(answers.clear(), splits, "platt")
    assert found.height == len(FEATURE_SETS) * 3 * 2
    assert found["value"].null_count() == found.height
    assert set(found["n"]) == {0}


def test_row_order_changes_nothing():
    answers, splits = made()
    found = spike_modeling(answers, splits, "platt")
    shuffled = (frame.sample(fraction=1, shuffle=True, seed=2) for frame in (answers, splits))
    assert spike_modeling(*shuffled, "platt").equals(found)


def test_answers_that_are_all_right_leave_auroc_undefined():
    found = spike_modeling(*made(correct=True), "platt")
    assert found.filter(metric="auroc")["value"].null_count() == len(FEATURE_SETS) * 3
    assert found.filter(metric="brier")["value"].null_count() == 0
