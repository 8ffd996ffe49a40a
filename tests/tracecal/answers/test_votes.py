"""Verdicts of several people on one answer, in tables and in exports of labelling tools."""

import json
import random

import pytest

import tracecal
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import Reading
from tracecal.cli.main import main
from tracecal.errors import InputError

VOTES = "q1 yes yes yes\nq2 no no no\nq3 yes yes no\nq4 yes no no\nq5 yes no\nq6 yes no yes no\n"
ANSWERS = [{"id": f"q{n}", "answer": "x", "logprobs": [-0.1 * n]} for n in range(1, 7)]


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    rows = [line.split() for line in VOTES.splitlines()]
    lines = [f"{name},{who},{word}" for name, *words in rows for who, word in enumerate(words)]
    path.write_text("\n".join(["id,annotator,verdict", *lines]))
    return path


@pytest.mark.parametrize(
    "contested, right, wrong, sentence",
    [
        ("majority", "q1 q3", "q2 q4 q5 q6", "2 contested: counted as wrong; 2 contested: decided"),
        ("wrong", "q1", "q2 q3 q4 q5 q6", "4 contested: counted as wrong"),
        ("leave-out", "q1", "q2", "4 contested: left out, so guarantees hold only for answers on"),
    ],
)
def test_people_who_disagree(votes, caplog, contested, right, wrong, sentence):
    caplog.set_level("INFO")
    for wrong_rows in ("stop", "skip"):
        reading = Reading(contested=contested, wrong_rows=wrong_rows)
        by_id = read_labels(votes, reading).by_id
        assert by_id == dict.fromkeys(right.split(), True) | dict.fromkeys(wrong.split(), False)
    assert sentence in caplog.text
    frame = tracecal.read_answers(ANSWERS, reading=Reading(labels=str(votes), contested=contested))
    assert frame["correct"].sum() == len(right.split())


def test_a_final_verdict_wins(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("id,verdict,adjudicated\na,no,false\na,no,\na,yes,TRUE\nb,no,\nb,yes,false\n")
    assert read_labels(path).by_id == {"a": True, "b": False}
    path.write_text("id,rater_1,rater_2,final_verdict\na,no,yes,yes\n")
    assert read_labels(path).by_id == {"a": True}
    results = [
        {"type": "choices", "from_name": "v", "value": {"choices": [word]}} for word in ("no", "ok")
    ]
    annotations = [
        {"completed_by": {"id": n}, "ground_truth": n == 1, "result": [result]}
        for n, result in enumerate(results)
    ]
    (tmp_path / "e.json").write_text(
        json.dumps([{"data": {"example_id": "a"}, "annotations": annotations}])
    )
    assert read_labels(tmp_path / "e.json").by_id == {"a": True}


def test_the_last_verdict_of_a_person_who_is_named_counts(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("id,annotator,verdict\na,Ada,no\na,Ada,yes\nb,Ada,no\nb,Bo,no\n")
    assert read_labels(path, Reading(who="annotator")).by_id == {"a": True, "b": False}
    assert read_labels(path).by_id == {"a": False, "b": False}


def test_rows_are_skipped_and_verdicts_are_not(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_text('{"id": "a", "verdict": "yes"}\n[1]\n')
    assert read_labels(path, Reading(wrong_rows="skip")).by_id == {"a": True}
    path.write_text('{"id": "a", "verdict": "yes"}\n{"id": "b", "verdict": "maybe"}\n')
    with pytest.raises(
        InputError, match=r"neither right .*right=\['fine', 'great'\], wrong=\['poor'\]"
    ):
        read_labels(path, Reading(wrong_rows="skip"))
    rows = [ANSWERS[0] | {"correct": "yes"}, ANSWERS[1] | {"correct": "yes", "label": "no"}]
    with pytest.raises(InputError, match="contradict each other .*Correct them[.]"):
        tracecal.read_answers(rows, reading=Reading(wrong_rows="skip"))


@pytest.mark.parametrize(
    "head, spec",
    [
        ("Answer ID,Verdict: right?", "form.csv:Answer ID:Verdict: right?"),
        ("a.b,c.d", "form.csv:a.b:c.d"),
        ("Example-ID,Is correct?", "form.csv"),
        ("Trace-ID,Label", "form.csv"),
    ],
)
def test_columns_of_odd_names(tmp_path, monkeypatch, head, spec):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "form.csv").write_text(f"{head}\nq1,yes\nq2,no\n")
    assert read_labels(spec, Reading(id="meta.trace_id")).by_id == {"q1": True, "q2": False}


def test_paths_into_rows(tmp_path):
    path = tmp_path / "a:b.jsonl"
    rows = [{"meta": {"example_id": f"q{n}"}, "judged": {"ok": n == 1}} for n in (1, 2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_labels(f"{path}:meta.example_id:judged.ok").by_id == {"q1": True, "q2": False}
    for names in (":verdict", "::ok"):
        with pytest.raises(InputError, match="names no two columns"):
            read_labels(f"{path}{names}")


def test_ids_match_but_for_case_and_hyphens(tmp_path, caplog):
    caplog.set_level("INFO")
    rows = [ANSWERS[0] | {"id": "3F2504E0-4F89-11D3-9A0C-0305E82C3301"}]
    (tmp_path / "l.csv").write_text("id,ok\n3f2504e04f8911d39a0c0305e82c3301,1\n")
    spec = f"{tmp_path / 'l.csv'}:id:ok"
    assert tracecal.read_answers(rows, reading=Reading(labels=spec))["correct"].to_list() == [True]
    assert "match the answers' but for case, hyphens" in caplog.text


def test_exports_that_are_damaged_are_refused_in_a_sentence(tmp_path):
    """A value replaced, removed or nested at any place: verdicts or an `InputError`."""
    task = {
        "data": {"example_id": "a"},
        "annotations": [
            {
                "completed_by": 1,
                "was_cancelled": False,
                "ground_truth": False,
                "result": [{"type": "choices", "from_name": "v", "value": {"choices": ["yes"]}}],
            }
        ],
    }
    record = {
        "id": "a",
        "metadata": {"example_id": "a"},
        "fields": {"answer": "x"},
        "responses": {"v": [{"value": "yes", "user_id": "u", "status": "submitted"}]},
    }
    labelled = {"id": "a", "labelled": {"example_id": "a", "correct": True, "note": ""}}
    for row in (task, record, labelled):
        for copied in damaged(row):
            path = tmp_path / "e.json"
            path.write_text(json.dumps([copied]))
            try:
                assert {*read_labels(path).by_id.values()} <= {True, False, None}
            except InputError as error:
                assert "Error" not in str(error)


def damaged(row):
    draw = random.Random(1)
    for number in range(200):
        copied = json.loads(json.dumps(row))
        places = [(copied, name) for name in copied]
        for place, name in places:
            below = place[name]
            places += [(below, key) for key in below] if isinstance(below, dict) else []
            places += [(below, key) for key in range(len(below))] if isinstance(below, list) else []
        place, name = places[number % len(places)]
        values = [
            None,
            1,
            -2.5,
            "x",
            [],
            {},
            [place[name]],
            {"x": place[name]},
            True,
            "",
            [[]],
            1e999,
        ]
        place[name] = draw.choice(values)
        yield copied


def test_people_of_one_table_are_compared(votes, capsys):
    assert main(["agree", str(votes), "--who", "annotator"]) == 0
    printed = capsys.readouterr().out
    assert "6 answers judged by two or more" in printed
    assert "equal verdicts: 52.6 % [" in printed  # 10 of 19 pairs
    assert "q5: right by 0, wrong by 1" in printed
    assert main(["agree", str(votes)]) == 1
