"""A run's outcome in words says no more than its intervals do."""

import polars as pl
import pytest

from tracecal.analyse.improvements import IMPROVEMENTS
from tracecal.explore.headline import headline

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


def sentences(*changes):
    return headline(pl.DataFrame([ROW | one for one in changes], schema=IMPROVEMENTS), LABELS)


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
            "0.050 worse (95% interval -0.090 to -0.010): supported.",
        ),
        ({"low": None, "high": None}, "0.050 better; no interval could be computed."),
    ],
)
def test_a_difference_is_shown_only_where_its_interval_excludes_zero(change, ending):
    (sentence,) = sentences(change)
    assert sentence.startswith("AUROC on Model M, mean over tasks (higher is better): TRACE+ 0.750")
    assert "best baseline SeqLogP 0.700" in sentence
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
