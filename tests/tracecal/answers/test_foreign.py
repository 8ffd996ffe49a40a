"""Answers from files as a task's traces."""

import json

import polars as pl
import pytest

from support.scripts import run_script
from tracecal.answers.reading import Reading
from tracecal.calibrator.trace_kinds import describe_traces
from tracecal.estimators.features import answer_features
from tracecal.io.digests import digest
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.traces import arrow_metadata, read_traces

TRACE = {"surprisal": [0.5, 0.25], "entropy": [0.75, 0.5]}
KIND = {"stop_token": "included", "processed": "no", "model": "m"}


@pytest.fixture
def task(tmp_path):
    rows = {"example_id": ["a", "b", "c"], "role": ["evaluation", "evaluation", "training"]}
    write_parquet(pl.DataFrame(rows), tmp_path / "task.parquet")
    return tmp_path / "task.parquet"


@pytest.fixture
def file(tmp_path):
    """Writes rows of answers; gives their file."""

    def make(*rows):
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return make


@pytest.fixture
def read(task, tmp_path):
    """Runs the rule on rows of answers; gives its two files."""

    def run(file, held=None, **reading):
        given = {"reading": Reading(**reading).model_dump_json()}
        outputs = {"traces": tmp_path / "t.arrow", "questions": tmp_path / "q.parquet"}
        run_script(
            "read_answers.py",
            tmp_path,
            input={"answers": file, "task": task},
            output=outputs,
            params=given | {"digest": held or digest(file)},
            model="slug",
        )
        return outputs["traces"], outputs["questions"]

    return run


def refusal(capsys):
    return " ".join(capsys.readouterr().err.split())


def answer(name, **more):
    return {"example_id": name, "answer": "51"} | TRACE | KIND | more


def test_a_file_that_changes_while_a_run_goes_on_is_refused(read, file, capsys):
    before = digest(file(answer("a"), answer("b")))
    with pytest.raises(SystemExit):
        read(file(answer("b"), answer("a")), held=before)
    assert "answers.jsonl was changed after this run had started" in refusal(capsys)


def test_traces_from_a_file_are_read_like_any_others(read, file):
    path, questions = read(file(answer("b", correct=True), answer("a")), vocabulary=9)
    columns = ["example_id", "surprisal", "entropy"]
    assert read_traces(path, columns).to_dicts() == [{"example_id": name, **TRACE} for name in "ab"]
    table = pl.read_ipc(path)
    assert table["tokens"].to_list() == [["·", "·"]] * 2
    assert table["correct"].to_list() == [None, True]
    told = describe_traces(arrow_metadata(path), pl.Series([True, False]), "slug", ["Label"], "t")
    expected = {
        "model": "slug",
        "known_as": ("Label", "m"),
        "stop_token": "included",
        "processed": "no",
        "entropy": "exact",
        "vocabulary": 9,
        "n": 2,
        "base_rate": 0.5,
    }
    assert {key: getattr(told, key) for key in expected} == expected
    roles = read_parquet(questions).sort("example_id")["role"].to_list()
    assert roles == ["evaluation", "evaluation", "training"]


def test_bounds_of_entropies_stand_beside_their_middle(read, file):
    top = {"entropy": None, "top_logprobs": [[-0.5, -1.5], [-0.25, -3.0]]}
    path, _ = read(file(answer("a", **top), answer("b", **top)), vocabulary=100)
    row = pl.read_ipc(path).row(0, named=True)
    ends = zip(row["entropy_lower"], row["entropy"], row["entropy_upper"], strict=True)
    assert all(low < middle < high for low, middle, high in ends)
    assert arrow_metadata(path)["entropy"] == "top-k"


WRONG = answer("b", surprisal=[-1.0, 0.5])
NOT_USABLE = answer("b", surprisal=None)
TEXTLESS = answer("b", answer=None)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([answer("a")], "no usable answer to 1 of 2 questions of the task, such as 'b'. An answer"),
        ([answer("a"), NOT_USABLE], "the answer 'b': no log-probabilities are given"),
        ([answer("a"), TEXTLESS], "the answer 'b': it has no text to judge, and no verdict"),
        ([answer("a"), WRONG], "line 2: token 1 has the surprisal -1"),
        (
            [answer("a"), answer("b"), answer("x")],
            "line 3: no example of the task has the id 'x'",
        ),
        ([answer("a"), answer("b", stop_token="absent")], "(stop_token: absent, included)"),
    ],
)
def test_what_is_wrong_or_missing_stops_the_run(read, file, capsys, rows, sentence):
    with pytest.raises(SystemExit):
        read(file(*rows))
    assert sentence in refusal(capsys)


@pytest.mark.parametrize("rows", [[], [NOT_USABLE], [TEXTLESS], [WRONG], [answer("x")]])
def test_a_run_may_go_on_without_them(read, file, capsys, rows):
    path, questions = read(file(*rows, answer("a")), wrong_rows="skip")
    assert pl.read_ipc(path)["example_id"].to_list() == ["a"]
    roles = read_parquet(questions).sort("example_id")["role"].to_list()
    assert roles == ["evaluation", "unanswered", "training"]
    assert evaluated(pl.read_ipc(path), questions)["example_id"].to_list() == ["a"]
    assert "answers 1 of 2 questions." in refusal(capsys)


def test_a_file_without_any_usable_answer_stops_the_run_all_the_same(read, file, capsys):
    with pytest.raises(SystemExit):
        read(file(NOT_USABLE, answer("a", surprisal=None)), wrong_rows="skip")
    assert "no usable answer to 2 of 2 questions" in refusal(capsys)


def test_log_probabilities_alone_are_enough_for_what_needs_no_entropy(read, file, capsys):
    path, questions = read(file(answer("a"), answer("b", entropy=None)))
    traces = read_traces(path, ["example_id", "surprisal", "entropy"])
    assert traces["entropy"].is_null().to_list() == [False, True]
    features = answer_features(traces).row(1, named=True)
    assert features["decayed_surprisal_conf_2"] is not None
    assert (
        features["trace_risk"] is features["mean_entropy_conf"] is features["entropy_q50"] is None
    )
    reason = "no top log-probabilities are given"
    assert arrow_metadata(path)["without_entropy"] == f"1 of 2 answers: {reason}"
    assert (
        f"scores that need entropy, such as TRACE, are null for 1 of 2 answers: {reason}"
        in refusal(capsys)
    )
    lacks = read_parquet(questions).sort("example_id")["lacks"].to_list()
    assert lacks == [None, reason, None]
    read(file(answer("a", entropy=None), answer("b", entropy=None)))
    assert arrow_metadata(path)["entropy"] == "none"
