"""A run's outcome in words says no more than its intervals do."""

import csv
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from trace_workflow.analyses.improvements import IMPROVEMENTS
from trace_workflow.commands.headline import WIDTH, headline
from trace_workflow.commands.headline import compared as compared_line
from trace_workflow.tables.csv_file import read_rows
from trace_workflow.tables.finding import findings_frame
from trace_workflow.tables.findings import compare_estimator, find_all, find_guarantee
from trace_workflow.tables.study_results import StudyResults
from tracecal.estimators.estimator import Entry
from tracecal.io.files import write_checked

ROW = dict.fromkeys(IMPROVEMENTS) | {
    "study": "main",
    "model": "m",
    "metric": "auroc",
    "estimator": "trace_plus",
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
    columns = dict.fromkeys([*MEAN, "estimator"], pl.String)
    columns |= dict.fromkeys(("mean", "n"), pl.Float64)
    return pl.DataFrame(rows, schema=columns)


def sentences(*changes, estimator="trace_plus"):
    return compare_estimator(improvements(*changes), STUDY, estimator)


SELECTED = "the baseline selected on the calibration data, most often SeqLogP"


@pytest.mark.parametrize(
    ("change", "outcome", "words", "ending"),
    [
        ({}, "won", "has a higher AUROC than", "0.050 better, 95 % interval +0.010 to +0.090)."),
        (
            {"low": -0.01},
            "tied",
            "ties in AUROC with",
            "0.050 better, 95 % interval -0.010 to +0.090).",
        ),
        (
            {"difference": -0.05, "low": -0.09, "high": -0.01},
            "lost",
            "has a lower AUROC than",
            "0.050 worse, 95 % interval -0.090 to -0.010).",
        ),
        (
            {"metric": "brier"},
            "won",
            "has a lower Brier score than",
            "0.050 better, 95 % interval +0.010 to +0.090).",
        ),
    ],
)
def test_a_difference_is_called_one_only_where_its_interval_excludes_zero(
    change, outcome, words, ending
):
    (finding,) = sentences(change)
    assert finding.outcome == outcome
    assert finding.sentence == f"TRACE+ {words} {SELECTED} (0.750 and 0.700, {ending}"


def test_without_an_interval_nothing_is_won():
    (finding,) = sentences({"low": None, "high": None})
    assert finding.outcome is None
    assert finding.sentence == (
        f"TRACE+ has no interval, so no verdict, in AUROC against {SELECTED} (0.750 and 0.700, "
        "0.050 better)."
    )


def test_the_prespecified_baseline_comes_first_and_the_oracle_has_no_verdict():
    oracle = {"against": "oracle", "low": None, "high": None}
    first, second, third = sentences(oracle, {"against": "named"}, {})
    assert "the prespecified baseline, SeqLogP (" in first.sentence
    assert SELECTED in second.sentence
    assert third.outcome is None and "which nobody can pick in advance" in third.sentence


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [((0.02, 0.1), "won"), ((-0.01, 0.1), "tied"), ((-0.1, -0.01), "lost"), ((None, None), None)],
)
def test_an_auroc_is_won_only_where_calibrated_probabilities_win_too(ends, outcome):
    low, high = ends
    beside = {"metric": "auroc_calibrated", "low": low, "high": high, "difference": 0.04}
    (finding,) = sentences({}, beside)
    assert finding.outcome == outcome
    assert "; of calibrated probabilities 0.040 better" in finding.sentence


@pytest.mark.parametrize(
    ("raw", "calibrated", "outcome"),
    [
        ((0.02, 0.1), (0.02, 0.1), "won"),
        ((0.02, 0.1), (-0.01, 0.1), "tied"),
        ((-0.1, 0.01), (-0.1, -0.02), "tied"),
        ((-0.1, -0.01), (-0.1, -0.02), "lost"),
    ],
)
def test_between_an_own_score_and_trace_plus_either_needs_both_aurocs_to_win(
    raw, calibrated, outcome
):
    own = {"estimator": "gap", "against": "trace_plus", "baseline": "trace_plus"}
    ends = [dict(zip(("low", "high"), pair, strict=True)) for pair in (raw, calibrated)]
    rows = [own | ends[0], own | ends[1] | {"metric": "auroc_calibrated"}]
    (finding,) = sentences(*rows, estimator="gap")
    assert finding.outcome == outcome
    assert finding.sentence.startswith("My gap ") and " TRACE+ (0.750" in finding.sentence


def test_what_is_undefined_is_said():
    (finding,) = sentences({"difference": None})
    assert "cannot be compared" in finding.sentence and finding.outcome is None


def test_the_cross_study_compares_means_over_pairs():
    mean = {"study": "cross", "model": None, "metric": "brier", "tasks": 9}
    first, second = sentences(mean, mean | {"against": "named", "low": -0.02})
    assert first.sentence.startswith(
        "Over 9 pairs of model and task, TRACE+ ties in Brier score with the prespecified"
    )
    assert second.sentence.startswith(
        f"Over 9 pairs of model and task, TRACE+ has a lower Brier score than {SELECTED}"
    )
    assert {first.table, second.table} == {"cross_model"}


ACCURACY = {"model": "m", "unanswered": 0, "without_entropy": 0, "cut": 0, "n": 60}
ACCURACY |= {"asked_without_template": False}
SVAMP = ACCURACY | {"task": "svamp", "correct": 19, "accuracy": 0.317}
STUDY = StudyResults(
    {},
    [
        Entry("seq_logp", "SeqLogP", "likelihood", "baseline", ""),
        Entry("lars", "LARS", "supervised", "broader", ""),
        Entry("p_true", "P(True)", "asked", "broader", ""),
        Entry("gap", "My gap", "own", "own", ""),
    ],
    {"m": "Model M"},
    {"svamp": "SVAMP"},
    {"main": {"model": "m", "tasks": ["svamp"]}},
    {"weights": 8, "calibration_share": 0.35},
)


def findings(rows, averages, study=STUDY, **analyses):
    other = SVAMP | {"task": "other"}
    accuracy = pl.DataFrame([SVAMP, other])
    frames = {"accuracy": accuracy, "averages": averages, "improvements": rows} | analyses
    return find_all(replace(study, frames=frames))


def problems(**changes):
    row = SVAMP | changes
    accuracy = pl.DataFrame([row | {"accuracy": row["correct"] / row["n"]}, SVAMP | {"task": "o"}])
    frames = {"accuracy": accuracy, "averages": means(), "improvements": improvements({})}
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    found = find_all(replace(STUDY, frames=frames, options=STUDY.options | fixed))
    sentences = [one.sentence for one in found if one.topic == "problem"]
    assert [one.sentence for one in found][: len(sentences)] == sentences, "they come first"
    assert not any("nan" in one.sentence.lower() for one in found)
    return sentences


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"cut": 23, "n": 60},
            "Answers of Model M were cut at the limit of tokens: 23 of 60 on SVAMP. Raise "
            "`max_new_tokens`, or set `stop`, before you use these results.",
        ),
        (
            {"cut": 33, "n": 60},
            "Most answers of Model M ran to the limit of tokens: 33 of 60 on SVAMP. The token that "
            "ends its turns may be undeclared: `show_prompt` prints those that are declared, and "
            "generation_config.json may name more. If answers are meant to be long, raise "
            "`max_new_tokens`, or set `stop`.",
        ),
        (
            {"asked_without_template": True},
            "Model M without a chat template: asked in plain text, in which a model that was "
            "trained on chats answers worse. Set `chat: false` if you mean that.",
        ),
        (
            {"correct": 60},
            "All answers of Model M on SVAMP are right: nothing can be compared; ask harder questions.",
        ),
        (
            {"correct": 0},
            "All answers of Model M on SVAMP are wrong: nothing can be compared; ask easier questions.",
        ),
        (
            {"correct": 56},
            "Too few labels of Model M to compare estimators or to guarantee: 4 of 60 wrong on "
            "SVAMP; label more answers.",
        ),
        (
            {"n": 54},
            "Too few labels of Model M to compare estimators or to guarantee: 19 of 54 calibrate "
            "on SVAMP; label more answers.",
        ),
    ],
)
def test_findings_begin_with_what_makes_the_others_worthless(changes, sentence):
    assert problems(**changes) == [sentence]


def test_a_sound_run_has_no_problem():
    assert problems() == problems(cut=6) == problems(correct=55) == problems(n=56) == []


TWO_TASKS = replace(
    STUDY,
    tasks={"svamp": "SVAMP", "other": "Other"},
    studies={"main": {"model": "m", "tasks": ["other", "svamp"]}},
)


def test_findings_are_on_all_tasks_and_on_each():
    single = {"study": None, "task": "svamp", "difference": -0.1}
    rows = improvements({}, single | {"low": -0.2, "high": 0.05}, single | {"task": "absent"})
    answers, right, few, overall, by_task = (
        finding.sentence for finding in findings(rows, means(), TWO_TASKS)
    )
    assert answers == "Model M gave 120 answers to 2 tasks."
    assert right == "Model M answers correctly: 19 of 60 on Other and 19 of 60 on SVAMP."
    assert few == (
        "Labels are few: 21 of the 60 labels of SVAMP calibrate, and 632 are advised for 8 "
        "weights. Label about 1,806 answers, or compare scores that fit one weight."
    )
    assert overall.startswith(f"TRACE+ has a higher AUROC than {SELECTED}")
    assert by_task.startswith(f"On SVAMP, TRACE+ ties in AUROC with {SELECTED}")
    assert "0.100 worse, 95 % interval -0.200 to +0.050" in by_task


def test_a_single_task_is_compared_once():
    rows = improvements({}, {"study": None, "task": "svamp"})
    assert [finding.topic for finding in findings(rows, means())].count("comparison") == 1


def test_own_scores_come_first_and_are_compared_with_trace_plus_too():
    own = {"estimator": "gap", "value": 0.81, "reference": 0.74, "difference": 0.07}
    plus = {"against": "trace_plus", "baseline": "trace_plus", "low": -0.09, "high": -0.01}
    rows = [own | {"against": "named"}, own, own | plus, {}, {"against": "named"}]
    first, second, third, *rest = findings(improvements(*rows), means())
    assert first.sentence == (
        "My gap has a higher AUROC than the prespecified baseline, SeqLogP (0.810 and 0.740, 0.070 "
        "better, 95 % interval +0.010 to +0.090)."
    )
    assert second.sentence.startswith(f"My gap has a higher AUROC than {SELECTED}")
    assert third.sentence.startswith("My gap has a lower AUROC than TRACE+ (0.810")
    assert {finding.estimator for finding in rest} == {None, "trace_plus"}


def test_answers_without_an_own_score_are_counted():
    row = {"study": None, "model": "m", "task": "svamp", "metric": "brier", "mean": 0.2}
    averages = pl.DataFrame(
        [row | {"estimator": "gap", "n": 36.0}, row | {"estimator": "seq_logp", "n": 40.0}],
        schema_overrides={"study": pl.String},
    )
    (sentence,) = (
        finding.sentence
        for finding in findings(improvements({}), averages)
        if finding.topic == "unscored"
    )
    assert sentence == (
        "My gap has no value for 10.0 % of the answers of Model M to SVAMP, and is compared on the "
        "others."
    )


def test_what_a_run_leaves_out_is_said_as_it_is_at_its_start():
    remarks = ["60 questions: 2 tables need 200.", "configured and not used: task svamp."]
    study = replace(STUDY, options=STUDY.options | {"remarks": remarks})
    said = [one for one in findings(improvements({}), means(trace_plus=0.8), study)]
    assert [one.sentence for one in said if one.topic == "remark"] == [
        remarks[0],
        "Configured and not used: task svamp.",
    ]


def test_every_finding_is_one_line_and_the_table_has_its_numbers():
    single = {"study": None, "task": "svamp", "low": 0.02, "high": 0.08}
    comparisons = findings(improvements({}, single), means(), TWO_TASKS)
    assert not any("\n" in finding.sentence for finding in comparisons)
    frame = findings_frame(comparisons)
    assert frame["sentence"].to_list() == [finding.sentence for finding in comparisons]
    rows = frame.filter(topic="comparison", outcome="won").select("task_label", "low", "high")
    assert rows.rows() == [(None, 0.01, 0.09), ("SVAMP", 0.02, 0.08)]


def test_a_guarantee_comes_first_and_none_without_one_fixed_beforehand():
    row = {"ranked_by": "mean_of_three", "model": "m", "task": "svamp", "confidence": 0.9}
    row |= {"error_rate": 0.3, "threshold": 0.7}
    row |= {"coverage": 0.2, "reason": None}
    rows = pl.DataFrame([row])
    assert findings(improvements({}), means(), risk_coverage=rows)[0].topic == "run"
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    study = replace(STUDY, options=STUDY.options | fixed)
    first, *_ = findings(improvements({}), means(), study, risk_coverage=rows)
    assert first.sentence.startswith("Model M is wrong on 68 % of SVAMP. Keep the surest 20 %")


def test_where_nothing_is_compared_only_answers_are_counted():
    found = findings(improvements(), means())
    assert [one.topic for one in found] == ["run", "answers", "caveat"]


def guarantee(**changes):
    """The findings on the guarantee that is fixed beforehand, of two tasks and two rates."""
    row = {
        **{"model": "m", "task": "svamp", "error_rate": 0.3, "confidence": 0.9},
        "ranked_by": "mean_of_three",
        **{"threshold": 0.7, "coverage": 0.2, "reason": None},
    } | changes
    better = row | {"error_rate": 0.2, "coverage": 0.9, "threshold": 0.8, "reason": None}
    rows = [row, better, better | {"task": "other"}]
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    study = replace(STUDY, frames={"accuracy": pl.DataFrame([SVAMP])}, options=fixed)
    return [finding.sentence for finding in find_guarantee(pl.DataFrame(rows), study)]


def test_the_guarantee_is_that_of_the_task_and_rate_fixed_beforehand():
    """Not the stricter one beside it, nor that of another task."""
    assert guarantee() == [
        "Model M is wrong on 68 % of SVAMP. Keep the surest 20 %: at most 30 % of them are wrong "
        "(90 % confidence)."
    ]
    assert len(guarantee()[0].replace(" %", "%").split()) <= 21, "a name of two words among them"
    assert "surest 20 % by SeqLogP: at most" in guarantee(ranked_by="seq_logp")[0]
    capped = guarantee(most_parts=4)[0]
    assert "; parts of answers with more than 4 are never kept)" in capped


def test_a_guarantee_that_cannot_be_given_is_told_of():
    (none,) = guarantee(threshold=None, coverage=0.0, reason="too few answers")
    assert none == (
        "Model M is wrong on 68 % of SVAMP. No threshold guarantees at most 30 % wrong "
        "(90 % confidence): too few answers."
    )


def write_rows(found):
    """The findings as the table's lines, in which what is absent is empty."""
    return list(csv.DictReader(findings_frame(found).write_csv().splitlines()))


def printed(tmp_path, *rows, **changes):
    """What ends `make demo`, of findings read from their table as the command does."""
    row = {"ranked_by": "mean_of_three", "model": "m", "task": "svamp", "confidence": 0.9}
    row |= {"error_rate": 0.3, "threshold": None}
    row |= {"coverage": 0.0} | changes
    row["reason"] = (
        "12 of the 40 most confident answers tested first are incorrect, too few answers to tell; "
        "if more groups are like these, 257 will do"
    )
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    study = replace(TWO_TASKS, options=STUDY.options | fixed)
    found = findings(improvements(*rows), means(), study, risk_coverage=pl.DataFrame([row]))
    file = tmp_path / "findings.csv"
    write_checked(findings_frame(found).write_csv(), file)
    return headline(read_rows(file), Path("results/demo"))


def test_the_terminal_shows_the_outcome_in_twelve_lines(tmp_path):
    tied = {"low": -0.01, "study": None, "task": "svamp"}
    lost = {"metric": "brier", "against": "named", "difference": -0.05, "low": -0.1, "high": -0.01}
    own = {"estimator": "gap", "against": "trace_plus", "low": -0.1}
    rows = [{}, {"against": "named"}, lost, tied, own, own | {"against": "named", "low": 0.01}]
    lines = printed(tmp_path, *rows)
    assert len(lines) <= 13 and max(map(len, lines)) <= WIDTH
    assert lines[0] == "Run:       Model M gave 120 answers to 2 tasks."
    assert lines[1] == (
        "My score:  My gap won prespecified: AUROC +0.050, tied TRACE+: AUROC +0.050."
    )
    assert lines[2].startswith("Guarantee: Model M is wrong on 68 % of SVAMP. No threshold")
    assert [line for line in lines if line.split(":")[0] in ("Won", "Tied", "Lost")] == [
        "Won:       baseline prespecified: AUROC +0.050; selected: AUROC +0.050",
        "Tied:      baseline selected: AUROC on SVAMP +0.050",
        "Lost:      baseline prespecified: Brier -0.050",
    ]
    assert [line for line in lines if line.startswith("Caveat:    Labels are few: 21")]
    assert (
        lines[-1]
        == "Findings:  results/demo/findings.txt; their numbers: results/demo/findings.csv"
    )


def test_without_a_fixed_guarantee_the_terminal_says_so():
    found = write_rows(findings(improvements({}), means()))
    assert headline(found, Path("results/demo"))[1].startswith("Guarantee: none: `study.headline`")


def test_a_line_of_outcomes_says_how_many_it_leaves_out():
    single = {"study": None, "task": "svamp"}
    many = [{"metric": m, "against": a} for m in ("auroc", "brier") for a in ("picked", "named")]
    found = findings(improvements(*many, single), means(), TWO_TASKS)
    found = [row for row in write_rows(found) if row["outcome"]]
    assert compared_line(found, "won") == (
        "Won:       baseline prespecified: AUROC +0.050, Brier +0.050; selected: AUROC +0.050; 2 more"
    )
    assert compared_line(found, "lost") == "Lost:      nothing"
