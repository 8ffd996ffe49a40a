"""examples/inspect_log.py: a run's answers as logs that Inspect reads, scores and shows."""

import importlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from support import chromium
from support.finished_run import ANSWERS, MODEL, TASK, write_run
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.calibrator.scoring import DIGITS
from tracecal.errors import InputError

pytest.importorskip("inspect_ai", reason="Inspect is not installed: make test-evaluators")
inspect_log = importlib.import_module("examples.inspect_log")
pytestmark = pytest.mark.evaluators
RUN = Path("results/smoke")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a run with its logs, and what the run holds of MODEL and TASK."""
    folder = tmp_path_factory.mktemp("run")
    held = write_run(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for _ in range(2):  # a second call replaces the files
            said = inspect_log.write_logs(RUN, Path("logs"), error_rate=0.3)
    assert said == f"{3 * ANSWERS:,} answers in 3 logs in logs"
    return folder, held


@pytest.fixture(scope="module")
def log(written):
    return written[0] / f"logs/{MODEL}/{TASK}.eval"


def test_inspect_reads_each_answer_with_its_tokens_verdict_and_confidence(written, log):
    from inspect_ai.log import list_eval_logs, read_eval_log

    listed = [(one.task, Path(one.name).parent.name) for one in list_eval_logs(str(log.parents[1]))]
    assert sorted(listed) == [
        ("arithmetic", "demo-medium"),
        ("arithmetic", "demo-small"),
        ("extractive", "demo-small"),
    ]
    read = read_eval_log(str(log))
    assert (read.status, read.eval.task, read.eval.model) == ("success", TASK, MODEL)
    held = written[1]
    probability = held["predictions"].group_by("example_id").agg(pl.col("probability").mean())
    probability = dict(probability.iter_rows())
    rows = held["labels"].join(held["traces"], on="example_id").sort("example_id")
    assert len(read.samples) == rows.height
    for sample, row in zip(read.samples, rows.iter_rows(named=True), strict=True):
        assert sample.id == row["example_id"]
        assert sample.input == f"What is {row['example_id']}?"
        assert sample.target == ["yes"]
        assert sample.output.completion == row["answer"]
        tokens = sample.output.choices[0].logprobs.content
        assert [token.token for token in tokens] == row["tokens"]
        assert [-token.logprob for token in tokens] == row["surprisal"]
        assert sample.metadata["entropy"] == row["entropy"]
        verdict, confidence = sample.scores["correct"], sample.scores["confidence"]
        assert verdict.value == ("C" if row["correct"] else "I")
        assert verdict.answer == row["prediction"]
        expected = probability.get(sample.id)
        assert confidence.value["probability"] == (expected and round(expected, DIGITS))
        assert confidence.value["correct"] is row["correct"]
        assert confidence.value["keep"] in (True, False, None)
        assert confidence.explanation


def test_the_logs_metrics_are_those_of_its_answers(written, log):
    from inspect_ai.log import read_eval_log

    read = read_eval_log(str(log))
    metrics = {
        score.name: {name: one.value for name, one in score.metrics.items()}
        for score in read.results.scores
    }
    assert metrics["correct"] == {"accuracy": written[1]["labels"]["correct"].mean()}
    values = pl.DataFrame([sample.scores["confidence"].value for sample in read.samples])
    known = values.drop_nulls("probability")
    pair = known["correct"].to_numpy(), known["probability"].to_numpy()
    assert metrics["confidence"]["auroc"] == pytest.approx(roc_auc_score(*pair))
    assert metrics["confidence"]["brier"] == pytest.approx(brier_score_loss(*pair))
    decided = values.drop_nulls("keep")
    kept = decided.filter("keep")
    assert 0 < kept.height < decided.height < values.height
    assert metrics["confidence"]["coverage"] == pytest.approx(kept.height / decided.height)
    assert metrics["confidence"]["kept_error"] == pytest.approx(1 - kept["correct"].mean())
    assert metrics["confidence"]["kept_error"] <= 0.3


def test_the_package_reads_the_log_again(written, log):
    read = read_file(log, Reading(label="scores.correct.value")).frame.sort("example_id")
    rows = written[1]["labels"].join(written[1]["traces"], on="example_id").sort("example_id")
    for name in ("example_id", "answer", "surprisal", "correct"):
        assert read[name].cast(rows[name].dtype).equals(rows[name]), name
    assert read["stop_token"].unique().to_list() == ["included"]


@pytest.fixture
def viewer(log, tmp_path):
    """The address of Inspect's viewer, on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).parent / "inspect"
    command = [program, "view", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--log-dir", log.parents[1]],
        env=os.environ | {"HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_inspects_viewer_shows_the_answers(viewer, tmp_path, monkeypatch):
    monkeypatch.setattr(chromium, "PATIENCE", 120)  # it loads five megabytes of scripts
    with chromium.started(tmp_path / "profile", width=2000) as browser:
        browser.visit(f"{viewer}#/logs/{MODEL}/{TASK}.eval")
        browser.wait_for("document.body.innerText.includes('What is e000?')")
        shown = browser.ask("document.body.innerText")
        assert f"{TASK} — {ANSWERS} samples" in shown
        for column in ("PROBABILITY", "KEEP", "ANSWER", "TARGET"):
            assert column in shown
        assert browser.complaints == []


def test_what_is_not_there_is_named(written, tmp_path):
    with pytest.raises(InputError, match="arithmetic.parquet has no 'trace'; it has seq_logp"):
        inspect_log.write_logs(written[0] / RUN, tmp_path, estimator="trace")
    with pytest.raises(InputError, match="has no predictions; is the run finished"):
        inspect_log.write_logs(tmp_path, tmp_path)


@pytest.fixture
def decided(written):
    """From an error rate and thresholds to the decisions on the answers of MODEL and TASK."""
    run = written[0] / RUN
    predictions = pl.read_parquet(run / f"predictions/{MODEL}/{TASK}.parquet")
    answers = inspect_log.read_answers(run, MODEL, TASK, predictions)
    held_out = predictions.filter(split=0)

    def decide(rate, thresholds, answers=answers):
        decisions = inspect_log.decisions(answers, held_out, thresholds, rate)
        return dict(zip(answers["example_id"], decisions, strict=True))

    decide.answers = answers
    return decide


@pytest.fixture
def thresholds(written):
    rows = pl.read_parquet(written[0] / RUN / "analyses/risk_coverage.parquet")
    return rows.filter(model=MODEL, task=TASK).to_dicts()


def test_answers_of_the_split_that_tests_are_kept_from_the_threshold_on(
    written, decided, thresholds
):
    decisions = decided(0.3, thresholds)
    [entry] = [entry for entry in thresholds if entry["error_rate"] == 0.3]
    held_out = written[1]["predictions"].filter(split=0)
    expected = dict.fromkeys(decisions) | {
        example_id: probability >= entry["threshold"]
        for example_id, probability in held_out.select("example_id", "probability").iter_rows()
    }
    assert {example_id: each.keep for example_id, each in decisions.items()} == expected
    # As many as the test counted.
    assert sum(each.keep is True for each in decisions.values()) == entry["kept"] > 0
    kept = next(each for each in decisions.values() if each.keep)
    assert "at least the threshold" in kept.reason
    assert "for at most 30 % wrong" in kept.reason


def test_what_is_not_decided_says_why(decided, thresholds):
    def reasons(rate, thresholds):
        decisions = decided(rate, thresholds).values()
        assert {each.keep for each in decisions} == {None}
        return {each.reason for each in decisions}

    assert reasons(None, thresholds) == {"no error rate is asked for"}
    assert reasons(0.3, []) == {"no threshold was tested"}
    [unreached] = [entry for entry in thresholds if entry["error_rate"] == 0.01]
    assert reasons(0.01, thresholds) == {unreached["reason"]}
    with pytest.raises(InputError, match="error_rate=0.2 was not tested; the run tested 0.01"):
        decided(0.2, thresholds)
