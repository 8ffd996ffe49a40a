"""Each setting is calibrated and measured as an estimator is; scikit-learn restates it."""

from statistics import fmean, stdev

import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.traced_answers import SPLITS, study
from trace_workflow.analyses.hyperparameter_sensitivity import hyperparameter_sensitivity
from trace_workflow.analyses.operator_variants import DEFAULTS, GRID
from tracecal.statistics.metrics import NAMES

STUDY = study()
ANALYSIS = hyperparameter_sensitivity(**STUDY, method="platt", ece_bins=15)


def restated(task, setting, level):
    """Brier and AUROC in each split, by scikit-learn."""
    scores = STUDY["operators"].filter(
        pl.col("setting") == setting, pl.col("level").eq_missing(level), task=task
    )
    answers = STUDY["answers"].join(scores, on=["model", "task", "example_id"])
    values = {"brier": [], "auroc": []}
    for split in range(SPLITS):
        parts = answers.join(
            STUDY["splits"].filter(split=split), on=["model", "task", "example_id"]
        )
        fitting, held_out = (parts.filter(part=part) for part in ("calibration", "evaluation"))
        model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10))
        model.fit(fitting.select("score").to_numpy(), fitting["correct"])
        probability = model.predict_proba(held_out.select("score").to_numpy())[:, 1]
        values["brier"].append(brier_score_loss(held_out["correct"], probability))
        values["auroc"].append(roc_auc_score(held_out["correct"], held_out["score"]))
    return values


def found(task, setting, level, metric):
    return ANALYSIS.filter(
        pl.col("task").eq_missing(task),
        pl.col("setting") == setting,
        pl.col("level").eq_missing(level),
        pl.col("metric") == metric,
    ).row(0, named=True)


@pytest.mark.parametrize(
    ("setting", "level"), [("default", None), ("alpha", 0.6), ("window", 8), ("exponent", 0)]
)
def test_a_setting_goes_through_the_one_protocol(setting, level):
    by_task = {task: restated(task, setting, level) for task in ("t", "u")}
    for metric in ("brier", "auroc"):
        for task, values in by_task.items():
            row = found(task, setting, level, metric)
            assert row["mean"] == pytest.approx(fmean(values[metric]), abs=1e-5)
            assert row["sd"] == pytest.approx(stdev(values[metric]), abs=1e-5)
        together = [
            fmean(both) for both in zip(*(v[metric] for v in by_task.values()), strict=True)
        ]
        row = found(None, setting, level, metric)
        assert row["mean"] == pytest.approx(fmean(together), abs=1e-5)
        assert row["sd"] == pytest.approx(stdev(together), abs=1e-5)


def test_all_settings_are_there_and_no_draw():
    settings = ANALYSIS.select("setting", "level").unique()
    assert settings.height == 1 + sum(len(levels) for levels in GRID.values())
    assert ANALYSIS["task"].unique().sort().to_list() == [None, "t", "u"]
    assert set(ANALYSIS["metric"]) == set(NAMES)
    assert set(ANALYSIS["repetitions"]) == {SPLITS}


def test_a_parameter_at_its_default_is_the_default():
    columns = ("task", "metric", "mean", "sd", "repetitions", "undefined")
    default = ANALYSIS.filter(setting="default").select(columns)
    for setting, level in DEFAULTS.items():
        assert ANALYSIS.filter(setting=setting, level=level).select(columns).equals(default)


def test_the_order_of_rows_changes_nothing():
    shuffled = {name: rows.sample(fraction=1, shuffle=True, seed=5) for name, rows in STUDY.items()}
    again = hyperparameter_sensitivity(**shuffled, method="platt", ece_bins=15)
    assert again.equals(ANALYSIS)


def test_answers_of_one_class_have_no_auroc_and_crash_nothing():
    right = STUDY["answers"].with_columns(correct=pl.col("correct") | (pl.col("task") == "u"))
    analysis = hyperparameter_sensitivity(**STUDY | {"answers": right}, method="platt", ece_bins=15)
    auroc = analysis.filter(metric="auroc", setting="default")
    assert auroc.filter(task="u").select("mean", "undefined").row(0) == (None, SPLITS)
    alone = auroc.filter(task="t")["mean"].item()
    assert auroc.filter(pl.col("task").is_null())["mean"].item() == pytest.approx(alone)


def test_without_scores_every_setting_has_null_rows():
    unknown = STUDY["operators"].with_columns(score=pl.lit(None, pl.Float64))
    found = hyperparameter_sensitivity(
        **STUDY | {"operators": unknown}, method="platt", ece_bins=15
    )
    keys = ["task", "setting", "level", "metric"]
    assert found.select(keys).equals(ANALYSIS.select(keys))
    assert found["mean"].null_count() == found.height
