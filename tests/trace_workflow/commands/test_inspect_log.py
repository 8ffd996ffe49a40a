"""Which answers a log of Inspect calls kept, and what is said where none can be written; the logs
themselves are tested in tests/evaluators.
"""

from pathlib import Path

import polars as pl
import pytest

from support.finished_run import MODEL, TASK, write_run
from trace_workflow.commands import inspect_log
from trace_workflow.commands.inspect_log import decisions, read_answers, write_logs
from tracecal.calibrator.schema import ErrorRateControl
from tracecal.errors import InputError

SMOKE = str(Path(__file__).resolve().parents[3] / "config/smoke.yaml")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, write_run(folder)


@pytest.fixture
def answers(run):
    return read_answers(run[0] / "results/smoke", MODEL, TASK, {"seq_logp"})


@pytest.fixture
def control(run):
    return ErrorRateControl.model_validate(run[1]["control"])


def test_answers_of_the_split_that_tests_are_kept_from_the_threshold_on(run, answers, control):
    found = dict(zip(answers["example_id"], decisions(answers, control, 0.3), strict=True))
    [entry] = [entry for entry in control.thresholds if entry.error_rate == 0.3]
    held_out = run[1]["predictions"].filter(split=0)
    expected = dict.fromkeys(found) | {
        example_id: probability >= entry.threshold
        for example_id, probability in held_out.select("example_id", "probability").iter_rows()
    }
    assert {example_id: one.keep for example_id, one in found.items()} == expected
    # As many as the test counted.
    assert sum(one.keep is True for one in found.values()) == entry.kept > 0
    kept = next(one for one in found.values() if one.keep)
    assert "at least the threshold" in kept.reason
    assert "for at most 30% wrong" in kept.reason


def test_what_is_not_decided_says_why(answers, control):
    def reasons(control, rate):
        found = list(decisions(answers, control, rate))
        assert {one.keep for one in found} == {None}
        return {one.reason for one in found}

    assert reasons(control, None) == {"no error rate is asked for"}
    assert reasons(None, 0.3) == {"no threshold was tested"}
    [unreached] = [entry for entry in control.thresholds if entry.error_rate == 0.01]
    assert reasons(control, 0.01) == {control.explain(unreached)}
    with pytest.raises(InputError, match="--error-rate 0.2 was not tested; the run tested 0.01"):
        list(decisions(answers, control, 0.2))


def test_larger_groups_are_never_kept(answers, control):
    grouped = answers.with_columns(group_id=pl.lit("all"))
    found = [one for one in decisions(grouped, control, 0.3) if one.keep is not None]
    assert {one.keep for one in found} == {False}
    assert {one.reason for one in found} == {"answers in groups of 400 are never kept"}


def test_without_inspect_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(inspect_log, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="not installed: pip install inspect-ai"):
        write_logs(SMOKE, tmp_path)
