"""A run's outcome in words says no more than its intervals do."""

import csv
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from trace_workflow.analyses.improvements import IMPROVEMENTS
from trace_workflow.commands.headline import WIDTH, headline
from trace_workflow.commands.headline import compared as compared_line
from trace_workflow.tables.baseline_findings import compare_with_baselines, count_wins_over_models
from trace_workflow.tables.csv_file import read_rows
from trace_workflow.tables.finding import findings_frame
from trace_workflow.tables.findings import find_all, find_guarantee
from trace_workflow.tables.study_results import StudyResults
from tracecal.estimators.estimator import Entry
from tracecal.io.files import write_checked

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
    return compare_with_baselines(improvements(*changes), {"svamp": "SVAMP"}, LABELS)


SELECTED = "the baseline selected on the calibration data, most often SeqLogP"


@pytest.mark.parametrize(
    ("change", "outcome", "words", "ending"),
    [
        ({}, "won", "better than", "0.050 better, 95% interval +0.010 to +0.090)."),
        (
            {"low": -0.01},
            "tied",
            "about as well as",
            "0.050 better, 95% interval -0.010 to +0.090).",
        ),
        (
            {"difference": -0.05, "low": -0.09, "high": -0.01},
            "lost",
            "worse than",
            "0.050 worse, 95% interval -0.090 to -0.010).",
        ),
    ],
)
def test_a_difference_is_called_one_only_where_its_interval_excludes_zero(
    change, outcome, words, ending
):
    (found,) = sentences(change)
    assert found.outcome == outcome
    assert found.sentence == (
        f"TRACE+ ranks right above wrong answers {words} {SELECTED} (AUROC 0.750 and 0.700, {ending}"
    )


def test_without_an_interval_nothing_is_won():
    (found,) = sentences({"low": None, "high": None})
    assert found.outcome is None
    assert found.sentence == (
        f"TRACE+ has no interval against {SELECTED} (AUROC 0.750 and 0.700, 0.050 better)."
    )


def test_the_prespecified_baseline_comes_first_and_the_oracle_is_no_comparison():
    prespecified, oracle = {"against": "named"}, {"against": "oracle"}
    first, second = sentences(oracle, prespecified, {})
    assert "the prespecified baseline, SeqLogP (" in first.sentence
    assert SELECTED in second.sentence


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [((0.02, 0.1), "won"), ((-0.01, 0.1), "tied"), ((-0.1, -0.01), "lost"), ((None, None), None)],
)
def test_an_auroc_is_won_only_where_calibrated_probabilities_win_too(ends, outcome):
    low, high = ends
    beside = {"metric": "auroc_calibrated", "low": low, "high": high, "difference": 0.04}
    (found,) = sentences({}, beside)
    assert found.outcome == outcome
    assert "; of calibrated probabilities 0.040 better" in found.sentence


def test_what_is_undefined_is_said():
    (found,) = sentences({"difference": None})
    assert "cannot be compared" in found.sentence and found.outcome is None


def test_the_cross_study_counts_wins_against_what_could_be_chosen():
    counts = {"study": "cross", "model": None, "metric": "brier", "tasks": 9, "wins": 4}
    rows = [
        counts | {"supported_wins": 1},
        counts | {"against": "named", "wins": 6, "supported_wins": 2},
        counts | {"against": "oracle", "wins": 3},
    ]
    (found,) = count_wins_over_models(improvements(*rows))
    assert found.sentence == (
        "Over 9 pairs of model and task, TRACE+ has a better Brier score than the prespecified "
        "baseline on 6 (2 with an interval above zero) and than the baseline selected on the "
        "calibration data on 4 (1 with an interval above zero)."
    )


ACCURACY = {"model": "m", "unanswered": 0, "without_entropy": 0, "cut": 0, "n": 60}
ACCURACY |= {"asked_without_template": False}
SVAMP = ACCURACY | {"task": "svamp", "correct": 19, "accuracy": 0.317}
STUDY = StudyResults(
    {},
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
        ({"correct": 60}, "All answers of Model M on SVAMP are right: nothing can be compared."),
        ({"correct": 0}, "All answers of Model M on SVAMP are wrong: nothing can be compared."),
        (
            {"correct": 56},
            "Too few labels of Model M to compare estimators or to guarantee: 4 of 60 wrong on "
            "SVAMP.",
        ),
        (
            {"n": 54},
            "Too few labels of Model M to compare estimators or to guarantee: 19 calibrate on "
            "SVAMP.",
        ),
    ],
)
def test_findings_begin_with_what_makes_the_others_worthless(changes, sentence):
    assert problems(**changes) == [sentence]


def test_a_sound_run_has_no_problem():
    assert problems() == problems(cut=6) == problems(correct=55) == problems(n=56) == []


def test_findings_tell_of_each_task_and_of_methods_of_other_families():
    own = {"study": None, "task": "svamp", "difference": -0.1}
    rows = improvements(
        {}, own | {"low": -0.2, "high": 0.05}, own | {"task": "other"}, {"against": "oracle"}
    )
    found = findings(rows, means(lars=0.65, p_true=0.4))
    done, right, few, overall, by_task, hindsight, others = (one.sentence for one in found)
    assert done == "Model M gave 120 answers to 2 tasks."
    assert right == "Model M answers correctly: 19 of 60 on SVAMP."
    assert few == ("Labels are few, so the numbers may change: 21 on SVAMP, where 632 are advised.")
    assert overall.startswith("TRACE+ ranks")
    assert by_task.startswith("On SVAMP, TRACE+ ranks right above wrong answers about as well as")
    assert "0.100 worse, 95% interval -0.200 to +0.050" in by_task
    assert others == "AUROC of methods of other families: LARS 0.65; P(True) 0.40."
    assert "no evidence for or against" in hindsight


def test_every_finding_is_one_line_and_the_table_has_its_numbers():
    own = {"study": None, "task": "svamp", "low": 0.02, "high": 0.08}
    found = findings(improvements({}, own), means())
    assert not any("\n" in one.sentence for one in found)
    frame = findings_frame(found)
    assert frame["sentence"].to_list() == [one.sentence for one in found]
    rows = frame.filter(topic="comparison", outcome="won").select("task_label", "low", "high")
    assert rows.rows() == [(None, 0.01, 0.09), ("SVAMP", 0.02, 0.08)]


def test_all_baselines_at_once_are_counted_by_their_simultaneous_intervals():
    scope = {"study": "main", "model": "m", "task": None, "metric": "auroc", "level": 0.95}
    ends = [(0.01, 0.1), (-0.1, 0.1), (-0.2, -0.1), (0.02, 0.3)]
    rows = [scope | {"baseline": str(i), "low": a, "high": b} for i, (a, b) in enumerate(ends)]
    found = findings(improvements({}), means(), comparisons=pl.DataFrame(rows))
    assert [one.sentence for one in found if one.topic == "all baselines"] == [
        "With 95% intervals that hold for all baselines at once, TRACE+ is better than 2 of 4 by "
        "AUROC (worse: 1)."
    ]


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.003, "does not measurably change"), (-0.1, "lowers"), (0.1, "raises")],
)
def test_whether_position_matters_is_asked_and_answered(difference, verdict):
    shared = {"sd": 0.005, "over": "draw"}
    rows = [
        shared | {"task": task, "quantity": quantity, "mean": mean}
        for task in (None, "svamp", "other")
        for quantity, mean in (("shifted", 0.639 + difference), ("difference", difference))
    ]
    original = [{"task": None, "quantity": "original", "mean": 0.639, "sd": 0.01, "over": "split"}]
    found = findings(improvements({}), means(), position_shift=pl.DataFrame(rows + original))
    assert [one.sentence for one in found if one.topic == "position"] == [
        f"Shuffling an answer's tokens {verdict} the AUROC of TRACE: 0.639 in order, "
        f"{0.639 + difference:.3f} shuffled."
    ]


@pytest.mark.parametrize("low", [0.86, None])
def test_where_risk_peaks_is_told_beside_chance_and_only_with_an_interval(low):
    own = {"model": "m", "task": "svamp", "pointed": 89, "level": 0.95, "high": 0.97}
    shares = {"window": 0.92, "random_window": 0.52, "random_part": 0.7, "failing_name": 0.97}
    rows = [own | {"pointer": name, "value": one, "low": low} for name, one in shares.items()]
    found = findings(improvements({}), means(), localisation=pl.DataFrame(rows))
    assert [one.sentence for one in found if one.topic == "localisation"] == [
        "In 89 partly wrong answers of Model M (SVAMP), these point at a wrong part: the part that "
        "usually fails 97%, the window of peak risk 92% (95% interval 86% to 97%), a random part "
        "70%, a random window 52% of the time."
    ] * (low is not None)


def test_pointers_without_a_share_are_left_out():
    own = {"model": "m", "task": "svamp", "pointed": 9, "level": 0.95, "low": 0.5, "high": 1.0}
    shares = {"window": 0.92, "random_window": 0.52, "random_part": None, "failing_name": None}
    rows = [own | {"pointer": name, "value": share} for name, share in shares.items()]
    found = findings(improvements({}), means(), localisation=pl.DataFrame(rows))
    (sentence,) = (one.sentence for one in found if one.topic == "localisation")
    assert "a wrong part: the window of peak risk 92% (95% interval" in sentence
    assert sentence.endswith(", a random window 52% of the time.")


def test_a_guarantee_comes_first_and_none_without_one_fixed_beforehand():
    row = {"ranked_by": "mean_of_three", "model": "m", "task": "svamp", "confidence": 0.9}
    row |= {"error_rate": 0.3, "threshold": 0.7}
    row |= {"coverage": 0.2, "reason": None}
    rows = pl.DataFrame([row])
    assert findings(improvements({}), means(), risk_coverage=rows)[0].topic == "run"
    fixed = {"headline": {"task": "svamp", "error_rate": 0.3}}
    study = replace(STUDY, options=STUDY.options | fixed)
    first, *_ = findings(improvements({}), means(), study, risk_coverage=rows)
    assert first.sentence.startswith("Model M is wrong on 68% of SVAMP. Keep the surest 20%")


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
        "Model M is wrong on 68% of SVAMP. Keep the surest 20%: at most 30% of them are wrong "
        "(90% confidence)."
    ]
    assert len(guarantee()[0].split()) <= 21, "a name of two words among them"
    assert "surest 20% by SeqLogP: at most" in guarantee(ranked_by="seq_logp")[0]
    capped = guarantee(most_parts=4)[0]
    assert "; parts of answers with more than 4 are never kept)" in capped


def test_a_guarantee_that_cannot_be_given_is_told_of():
    (none,) = guarantee(threshold=None, coverage=0.0, reason="too few answers")
    assert none == (
        "Model M is wrong on 68% of SVAMP. No threshold guarantees at most 30% wrong "
        "(90% confidence): too few answers."
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
    study = replace(STUDY, options=STUDY.options | fixed)
    found = findings(improvements(*rows), means(), study, risk_coverage=pl.DataFrame([row]))
    file = tmp_path / "findings.csv"
    write_checked(findings_frame(found).write_csv(), file)
    return headline(read_rows(file), Path("results/demo"))


def test_the_terminal_shows_the_outcome_in_twelve_lines(tmp_path):
    tied = {"low": -0.01, "study": None, "task": "svamp"}
    lost = {"metric": "brier", "against": "named", "difference": -0.05, "low": -0.1, "high": -0.01}
    lines = printed(tmp_path, {}, {"against": "named"}, lost, tied)
    assert len(lines) <= 12 and max(map(len, lines)) <= WIDTH
    assert lines[0] == "Run:       Model M gave 120 answers to 2 tasks."
    assert lines[1].startswith("Guarantee: Model M is wrong on 68% of SVAMP. No threshold")
    assert [line for line in lines if line.split(":")[0] in ("Won", "Tied", "Lost")] == [
        "Won:       baseline prespecified: AUROC +0.050; selected: AUROC +0.050",
        "Tied:      baseline selected: AUROC on SVAMP +0.050",
        "Lost:      baseline prespecified: Brier -0.050",
    ]
    assert [line for line in lines if line.startswith("Caveat:    Labels are few, so")]
    assert (
        lines[-1]
        == "Findings:  results/demo/findings.txt; their numbers: results/demo/findings.csv"
    )


def test_without_a_fixed_guarantee_the_terminal_says_so():
    found = write_rows(findings(improvements({}), means()))
    assert headline(found, Path("results/demo"))[1].startswith("Guarantee: none: `study.headline`")


def test_a_line_of_outcomes_says_how_many_it_leaves_out():
    names = {"study": None, "task": "svamp"}
    many = [{"metric": m, "against": a} for m in ("auroc", "brier") for a in ("picked", "named")]
    found = write_rows(findings(improvements(*many, names), means()))
    assert compared_line(found, "won") == (
        "Won:       baseline prespecified: AUROC +0.050, Brier +0.050; selected: AUROC +0.050; 2 more"
    )
    assert compared_line(found, "lost") == "Lost:      nothing"
