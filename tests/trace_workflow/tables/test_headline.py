"""A run's outcome in words says no more than its intervals do."""

from dataclasses import replace

import polars as pl
import pytest

from trace_workflow.analyses.improvements import IMPROVEMENTS
from trace_workflow.tables.findings import findings, guaranteed, headline
from trace_workflow.tables.settings import Settings
from tracecal.estimators.entry import Entry

LABELS = {"m": "Model M", "seq_logp": "SeqLogP"}
ROW = dict.fromkeys(IMPROVEMENTS) | {
    "study": "main",
    "model": "m",
    "metric": "auroc",
    "against": "picked",
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
        ({}, "0.050 better (95% interval +0.010 to +0.090), supported."),
        (
            {"low": -0.01},
            "0.050 better (95% interval -0.010 to +0.090), not distinguishable from zero.",
        ),
        (
            {"difference": -0.05, "low": -0.09, "high": -0.01},
            "0.050 worse (95% interval -0.090 to -0.010), a loss.",
        ),
        ({"low": None, "high": None}, "0.050 better; no interval could be computed."),
    ],
)
def test_a_difference_is_called_one_only_where_its_interval_excludes_zero(change, ending):
    (sentence,) = sentences(change)
    assert sentence.startswith(
        "AUROC on Model M, mean over tasks (higher is better): TRACE+ 0.750, TRACE 0.600. Against "
        "the baseline picked on the calibration labels, most often SeqLogP (0.700): "
    )
    assert sentence.endswith(ending)


def test_the_picked_baseline_is_told_of_first_and_the_oracle_last_as_a_point():
    named, oracle = {"against": "named", "difference": 0.02}, {"against": "oracle", "low": None}
    (sentence,) = sentences(oracle | {"high": None}, named, {})
    picked, named, best = (
        sentence.index(words)
        for words in ("picked on the", "SeqLogP, named beforehand (0.700): 0.020", "in hindsight")
    )
    assert picked < named < best
    assert sentence.endswith("The best baseline in hindsight, SeqLogP, has 0.700.")


def test_a_win_by_auroc_stands_beside_that_of_calibrated_probabilities():
    both = sentences({}, {"metric": "auroc_calibrated", "difference": -0.01})
    assert [one.split(" on ")[0] for one in both] == ["AUROC", "AUROC of calibrated probabilities"]


def test_what_is_undefined_is_said():
    assert "no value" in sentences({"difference": None})[0]


def test_the_cross_study_counts_wins_and_rows_of_tasks_are_no_headline():
    counts = {"study": "cross", "model": None, "metric": "brier", "tasks": 9, "wins": 4}
    oracle = counts | {"against": "oracle", "wins": 2}
    found = sentences({"task": "svamp"}, counts | {"supported_wins": 1}, oracle)
    assert found == [
        "Brier over models: TRACE+ is better than the picked baseline on 4 of 9 model-task pairs, "
        "1 of them supported by their interval, and than the best in hindsight on 2."
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


def told(rows, averages, **more):
    other = SVAMP | {"task": "other"}
    accuracy = pl.DataFrame([SVAMP, other])
    frames = {"accuracy": accuracy, "averages": averages, "improvements": rows} | more
    return findings(frames, SETTINGS)


def test_findings_tell_of_each_task_and_of_methods_of_other_families():
    own = {"study": None, "task": "svamp", "difference": -0.1}
    rows = improvements({}, own | {"low": -0.2, "high": 0.05}, own | {"task": "other"})
    right, few, overall, by_task, others, hindsight = told(rows, means(lars=0.65, p_true=0.4))
    assert right == "Correct answers (accuracy): SVAMP 19 of 60 (0.317)."
    assert few.startswith("Sample too small")
    assert few.endswith("SVAMP needs about 632 calibration answers, has 21 (7 of the rarer class).")
    assert overall.startswith("AUROC on Model M")
    assert by_task.endswith(
        "SVAMP -0.100, 95% interval -0.200 to +0.050 (not distinguishable from zero)."
    )
    assert others == "AUROC of methods of other families: LARS 0.65, P(True) 0.40."
    assert "not evidence of a loss" in hindsight


def test_every_interval_of_a_task_is_printed_whether_it_excludes_zero_or_not():
    own = {"study": None, "task": "svamp", "low": 0.02, "high": 0.08}
    found = told(improvements({}, own), means())
    (by_task,) = [one for one in found if "task by task" in one]
    assert by_task.endswith("SVAMP +0.050, 95% interval +0.020 to +0.080 (supported).")


def test_all_baselines_at_once_are_counted_by_their_simultaneous_intervals():
    scope = {"study": "main", "model": "m", "task": None, "metric": "auroc", "level": 0.95}
    ends = [(0.01, 0.1), (-0.1, 0.1), (-0.2, -0.1), (0.02, 0.3)]
    rows = [scope | {"baseline": str(i), "low": a, "high": b} for i, (a, b) in enumerate(ends)]
    found = told(improvements({}), means(), comparisons=pl.DataFrame(rows))
    assert (
        "By 95% intervals that hold for all baselines at once: AUROC: of 4 baselines TRACE+ is "
        "better than 2 and worse than 1." in found
    )


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.003, "no difference beyond that between random orders"), (-0.1, "the order helps")],
)
def test_whether_position_matters_is_asked_and_answered(difference, verdict):
    shared = {"sd": 0.005, "over": "draw"}
    rows = [
        shared | {"task": task, "quantity": quantity, "mean": mean}
        for task in (None, "svamp", "other")
        for quantity, mean in (("shifted", 0.639 + difference), ("difference", difference))
    ]
    original = [{"task": None, "quantity": "original", "mean": 0.639, "sd": 0.01, "over": "split"}]
    found = told(improvements({}), means(), position_shift=pl.DataFrame(rows + original))
    (sentence,) = [one for one in found if one.startswith("Does position matter?")]
    assert f"in their order 0.639, in random orders {0.639 + difference:.3f}" in sentence
    assert sentence.endswith(f"{verdict}.")


@pytest.mark.parametrize("low", [0.86, None])
def test_where_risk_peaks_is_told_beside_chance_and_only_with_an_interval(low):
    own = {"model": "m", "task": "svamp", "pointed": 89, "level": 0.95, "high": 0.97}
    shares = {"window": 0.92, "random_window": 0.52, "random_part": 0.7, "failing_name": 0.97}
    rows = [own | {"pointer": name, "value": one, "low": low} for name, one in shares.items()]
    found = told(improvements({}), means(), localisation=pl.DataFrame(rows))
    sentences = [one for one in found if one.startswith("Does risk peak where")]
    assert sentences == [
        "Does risk peak where an answer is wrong? Of 89 answers of Model M with right and wrong "
        "parts (SVAMP), a wrong one is pointed at by the name that fails most often, always in "
        "97%; the window of peak risk in 92% (95% interval 86% to 97%); a random part in 70%; a "
        "random window in 52%."
    ] * (low is not None)


def test_a_guarantee_comes_first_and_none_without_one_fixed_beforehand():
    row = {"model": "m", "task": "svamp", "confidence": 0.9, "error_rate": 0.3, "threshold": 0.7}
    row |= {"coverage": 0.2, "largest_group": 1, "reason": None, "other_splits": 0}
    rows = pl.DataFrame([row])
    assert told(improvements({}), means(), risk_coverage=rows)[0].startswith("Correct answers")
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    settings = replace(SETTINGS, more=SETTINGS.more | fixed)
    frames = {"accuracy": pl.DataFrame([SVAMP]), "averages": means(), "risk_coverage": rows}
    first, *_ = findings(frames | {"improvements": improvements({})}, settings)
    assert first.startswith("SVAMP: Model M gets 68 of 100 wrong. Keep the 20")


def test_where_nothing_is_compared_only_answers_are_counted():
    right, few = told(improvements(), means())
    assert right.startswith("Correct answers") and few.startswith("Sample too small")


def promised(**changes):
    """The finding on the guarantee that is fixed beforehand, of two tasks and two rates."""
    row = {
        **{"model": "m", "task": "svamp", "error_rate": 0.3, "confidence": 0.9},
        **{"threshold": 0.7, "coverage": 0.2, "largest_group": 1, "reason": None},
        **{"other_splits": 19, "other_thresholds": 6},
    } | changes
    better = row | {"error_rate": 0.2, "coverage": 0.9, "threshold": 0.8, "reason": None}
    rows = [row, better, better | {"task": "other"}]
    settings = replace(SETTINGS, more={"headline": {"task": "svamp", "error_rate": 0.3}})
    (told,) = guaranteed(pl.DataFrame(rows), pl.DataFrame([SVAMP]), settings)
    return told


def test_the_guarantee_is_that_of_the_task_and_rate_fixed_beforehand():
    """Not the stricter one beside it, nor that of another task."""
    assert promised() == (
        "SVAMP: Model M gets 68 of 100 wrong. Keep the 20 it is surest of: at most 30 of 100 such "
        "answers are wrong (90% confidence; task and rate were fixed beforehand). Of 19 other "
        "random splits of the labels 6 can promise that."
    )
    assert "counts with at most 4)" in promised(largest_group=4)
    assert promised(other_splits=0).endswith("beforehand).")


def test_a_guarantee_that_cannot_be_given_is_told_of():
    none = promised(threshold=None, coverage=0.0, reason="too few answers")
    assert none.startswith(
        "SVAMP: Model M gets 68 of 100 wrong. That at most 30 of 100 kept answers are wrong cannot "
        "be promised here (90% confidence;"
    )
    assert "too few answers. Of 19 other" in none
