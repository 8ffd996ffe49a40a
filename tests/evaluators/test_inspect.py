"""The scorer in Inspect itself: make test-evaluators."""

import math

import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from evaluators.conftest import made
from tracecal.calibrator.scoring import DIGITS

pytestmark = pytest.mark.evaluators


def results(log):
    """The metrics that a log holds of our scorer, and its samples' scores by id."""
    from inspect_ai.log import read_eval_log

    read = read_eval_log(str(log))
    (own,) = [one for one in read.results.scores if one.name == "confidence"]
    return {name: one.value for name, one in own.metrics.items()}, {
        sample.id: sample.scores["confidence"] for sample in read.samples
    }


@pytest.fixture(scope="module")
def answers():
    """New answers, of which two have no log-probabilities."""
    rows = made(300, 2)
    return [row | ({"steps": None} if place < 2 else {}) for place, row in enumerate(rows)]


@pytest.fixture(scope="module")
def log(evaluated, answers):
    return evaluated("new", answers)


def rescored(run, log, name, *options, fails=False):
    """`inspect score` with our scorer; the path of the scored log, and what was said."""
    scored = log.parents[1] / f"{name}.eval"
    given = [part for one in options for part in ("-S", one)]
    where = ["--action", "append", "--output-file", scored, "--display", "plain"]
    command = ["score", log, "--scorer", "tracecal/confidence", *given, *where]
    return scored, run(log.parent, "inspect", *command, fails=fails)


def test_a_log_is_scored_and_its_metrics_are_those_of_its_answers(run, log, calibrator, answers):
    scored, said = rescored(run, log, "scored", f"calibrator={calibrator}", "error_rate=0.3")
    metrics, scores = results(scored)
    found = pl.DataFrame([one.value for one in scores.values()])
    right = {one["id"]: one["text"] == "yes" for one in answers}
    assert {name: one.value["correct"] for name, one in scores.items()} == right
    known = found.drop_nulls("probability")
    assert known.height == len(answers) - 2
    correct, probability = known["correct"].to_numpy(), known["probability"].to_numpy()
    assert metrics["auroc"] == pytest.approx(roc_auc_score(correct, probability))
    assert metrics["auroc"] > 0.6
    assert metrics["brier"] == pytest.approx(brier_score_loss(correct, probability))
    bins = known.group_by((pl.col("probability") * 15).floor()).agg(
        gap=(pl.col("correct").sum() - pl.col("probability").sum()).abs()
    )
    assert metrics["ece"] == pytest.approx(bins["gap"].sum() / known.height)
    assert 0 < metrics["coverage"] < 1
    assert metrics["coverage"] == pytest.approx(found["keep"].sum() / len(answers))
    kept = found.filter("keep")
    assert metrics["kept_error"] == pytest.approx(1 - kept["correct"].mean())
    assert metrics["kept_error"] <= 0.3
    assert metrics["without_confidence"] == 2
    assert metrics["without_verdict"] == metrics["seen"] == 0
    assert "without_confidence" in said
    lacking = scores[answers[0]["id"]]
    assert lacking.value["probability"] is lacking.value["keep"] is None
    assert lacking.explanation == "no log-probabilities are given"


def test_it_says_what_the_command_says_of_the_same_log(run, log, calibrator):
    scored, _ = rescored(run, log, "same", f"calibrator={calibrator}", "error_rate=0.3")
    output = scored.with_suffix(".jsonl")
    given = ["--calibrator", calibrator, "--error-rate", "0.3", "--output", output]
    run(log.parent, "tracecal", "score", "--answers", log, *given)
    rows = {row["example_id"]: row for row in pl.read_ndjson(output).iter_rows(named=True)}
    _, scores = results(scored)
    assert scores.keys() == rows.keys()
    for example_id, score in scores.items():
        row = rows[example_id]
        assert score.value["keep"] is row["keep"]
        if score.value["probability"] is None:
            assert row["probability"] is None
            continue
        assert round(score.value["probability"], DIGITS) == row["probability"]
        assert round(score.metadata["lower"], DIGITS) == row["lower"]


def test_a_task_that_names_it_gives_the_same(run, log, evaluated, calibrator, answers):
    in_task = evaluated("in_task", answers, f"calibrator={calibrator}")
    scored, _ = rescored(run, log, "beside", f"calibrator={calibrator}", "error_rate=0.3")
    (one, scores), (other, others) = results(in_task), results(scored)
    assert one == pytest.approx(other)
    assert {name: one.value for name, one in scores.items()} == {
        name: one.value for name, one in others.items()
    }


def test_answers_that_it_was_fitted_on_count_in_no_metric(run, calibrator):
    (log,) = (calibrator.parent / "logs").glob("*.eval")
    scored, _ = rescored(run, log, "seen", f"calibrator={calibrator}", "error_rate=0.3")
    metrics, scores = results(scored)
    assert metrics["seen"] == len(scores) == 600
    assert all(math.isnan(metrics[name]) for name in ("auroc", "brier", "ece", "coverage"))
    assert "fitted on this very answer" in next(iter(scores.values())).explanation


def test_of_several_scorers_one_must_be_named(run, evaluated, calibrator):
    log = evaluated("two", made(4, 3), "two=true")
    given = f"calibrator={calibrator}"
    _, said = rescored(run, log, "refused", given, fails=True)
    assert "several scorers judge the answers (they are match, includes)" in said
    _, said = rescored(run, log, "misspelt", given, "correctness=mtach", fails=True)
    assert "there is no scorer 'mtach'" in said
    scored, _ = rescored(run, log, "named", given, "correctness=includes", "processed=no")
    assert results(scored)[0]["without_verdict"] == 0


def test_without_a_verdict_only_the_confidence_stands(run, log, calibrator):
    scored = log.parents[1] / "alone.eval"
    given = ["-S", f"calibrator={calibrator}", "--action", "overwrite", "--output-file", scored]
    run(log.parent, "inspect", "score", log, "--scorer", "tracecal/confidence", *given)
    metrics, scores = results(scored)
    assert metrics["without_verdict"] == len(scores)
    assert math.isnan(metrics["brier"])
    assert "no scorer has judged it" in list(scores.values())[-1].explanation


def test_a_calibrator_of_another_model_is_refused(run, log, calibrator):
    other = f"calibrator={calibrator}"
    _, said = rescored(run, log, "other", other, "model=another", fails=True)
    assert "the calibrator was fitted on answers of 'm'" in said


def test_inspect_has_no_option_that_names_a_scorer_for_a_new_evaluation(run, tmp_path):
    """What docs/guides/evaluators.md says."""
    assert "--scorer" not in run(tmp_path, "inspect", "eval", "--help")
