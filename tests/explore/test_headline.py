"""A run's outcome in words says no more than its intervals do."""

import polars as pl
import pytest

from tracecal.analyse.improvements import IMPROVEMENTS
from tracecal.explore.headline import findings, headline
from tracecal.tables.settings import Entry, Settings

LABELS = {"m": "Model M", "seq_logp": "SeqLogP"}
ROW = dict.fromkeys(IMPROVEMENTS) | {
    "study": "main",
    "model": "m",
    "metric": "auroc",
    "baseline": "seq_logp",
    "reference": 0.7,
    "value": 0.75,
    "difference": 0.05,
    "low": 0.01,
    "high": 0.09,
    "level": 0.95,
}


MEAN = {"study": "main", "model": "m", "task": None, "metric": "auroc"}


def improvements(*changes):
    return pl.DataFrame([ROW | one for one in changes], schema=IMPROVEMENTS)


def means(**by_estimator):
    rows = [MEAN | {"estimator": name, "mean": mean} for name, mean in by_estimator.items()]
    columns = dict.fromkeys([*MEAN, "estimator"], pl.String) | {"mean": pl.Float64}
    return pl.DataFrame(rows, schema=columns)


def sentences(*changes):
    return headline(improvements(*changes), means(trace=0.6), LABELS)


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ({}, "0.050 better (95% interval +0.010 to +0.090): supported."),
        (
            {"low": -0.01},
            "0.050 better (95% interval -0.010 to +0.090): not distinguishable from zero.",
        ),
        (
            {"difference": -0.05, "low": -0.09, "high": -0.01},
            "0.050 worse (95% interval -0.090 to -0.010): interval below zero.",
        ),
        ({"low": None, "high": None}, "0.050 better; no interval could be computed."),
    ],
)
def test_a_difference_is_shown_only_where_its_interval_excludes_zero(change, ending):
    (sentence,) = sentences(change)
    assert sentence.startswith("AUROC on Model M, mean over tasks (higher is better): TRACE+ 0.750")
    assert "TRACE 0.600, best baseline SeqLogP 0.700" in sentence
    assert sentence.endswith(ending)


def test_what_is_undefined_is_said():
    assert "no value" in sentences({"difference": None})[0]


def test_the_cross_study_counts_wins_and_rows_of_tasks_are_no_headline():
    counts = {"study": "cross", "model": None, "metric": "brier", "tasks": 9, "wins": 4}
    found = sentences({"task": "svamp"}, counts | {"supported_wins": 1})
    assert found == [
        "Brier over models: TRACE+ is better than the best baseline on 4 of 9 model-task pairs, 1 "
        "of them supported by their interval."
    ]


ACCURACY = {"model": "m", "unanswered": 0, "without_entropy": 0, "n": 60}
SVAMP = ACCURACY | {"task": "svamp", "correct": 19, "accuracy": 0.317}
SETTINGS = Settings(
    [
        Entry("seq_logp", "SeqLogP", "likelihood", "baseline", ""),
        Entry("lars", "LARS", "supervised", "broader", ""),
        Entry("p_true", "P(True)", "asked", "broader", ""),
    ],
    {"m": "Model M"},
    {"svamp": "SVAMP"},
    {"main": {"model": "m", "tasks": ["svamp"]}},
    {"weights": 8, "calibration_share": 0.35},
)


def told(rows, averages):
    other = SVAMP | {"task": "other"}
    frames = {"accuracy": pl.DataFrame([SVAMP, other]), "averages": averages, "improvements": rows}
    return findings(frames, SETTINGS)


def test_findings_tell_of_each_task_and_of_methods_of_other_families():
    own = {"study": None, "task": "svamp", "value": 0.6, "difference": -0.1}
    rows = improvements({}, own | {"low": -0.2, "high": -0.05}, own | {"task": "other"})
    right, few, overall, by_task, others, hindsight = told(rows, means(lars=0.65, p_true=0.4))
    assert right == "Right answers (accuracy): SVAMP 19 of 60 (0.317)."
    assert few.startswith("Too few to say") and few.endswith("This applies to SVAMP (about 7).")
    assert overall.startswith("AUROC on Model M")
    assert by_task.endswith("task by task: SVAMP 0.60, SeqLogP 0.70 (interval below zero).")
    assert others.endswith("learn: LARS 0.65, P(True) 0.40.")
    assert "leans against TRACE+" in hindsight


def test_where_nothing_is_compared_only_answers_are_counted():
    right, few = told(improvements(), means())
    assert right.startswith("Right answers") and few.startswith("Too few")
