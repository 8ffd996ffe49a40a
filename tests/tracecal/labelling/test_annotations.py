"""Labels from Label Studio's and Argilla's exports, in the shape that these programs write."""

import json

import pytest

from tracecal.errors import InputError
from tracecal.labelling.annotations import read_annotations
from tracecal.labelling.verdicts import Verdict, VerdictFile


def task(example, *verdicts, name="verdict", cancelled=False, **more):
    """A task of Label Studio 1.x's export as JSON, an annotation per verdict."""
    return {
        "id": 17,
        "data": {"example_id": example, "question": "Who?", "answer": "Ada"},
        "annotations": [
            {
                "id": 1001 + place,
                "completed_by": place,
                "result": [
                    {
                        "id": "Dx_aB91ISN",
                        "from_name": name,
                        "to_name": "answer",
                        "type": "choices",
                        "origin": "manual",
                        "value": {"choices": [verdict]},
                    }
                ],
                "was_cancelled": cancelled,
                "ground_truth": False,
                "lead_time": 4.288,
            }
            for place, verdict in enumerate(verdicts)
        ],
        "predictions": [],
        "project": 83,
    } | more


def record(example, *verdicts, name="verdict", **more):
    """A record as Argilla 2.8's `Record.to_dict` makes it, which `to_json` writes."""
    return {
        "id": example,
        "fields": {"question": "Who?", "answer": "Ada"},
        "metadata": {},
        "suggestions": {name: {"value": "wrong", "score": 0.9, "agent": "a model"}},
        "responses": {name: [{"value": value, "user_id": "u"} for value in verdicts]},
        "vectors": {},
        "status": "completed",
        "_server_id": "5f3c",
    } | more


@pytest.fixture
def export(tmp_path):
    def write(*rows):
        path = tmp_path / "export.json"
        path.write_text(json.dumps(list(rows)), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("made", [task, record])
def test_verdicts_are_read_by_the_answers_own_ids(export, made):
    rows = (
        made("a", "Right"),
        made("b", "wrong"),
        made("c", "Unsure"),
        made("d"),
        made("e", "yes", "?"),
    )
    expected = {"a": True, "b": False, "c": None, "e": True}
    assert read_annotations(export(*rows)) == expected


def test_a_file_of_label_itself_is_read_like_an_export(tmp_path):
    path = tmp_path / "labelled.jsonl"
    rows = {"x": {"id": "x", "answer": "1", "correct": True}, "y": {"id": "y"}, "z": {"id": "z"}}
    verdicts = VerdictFile(path, rows, {"z": "capital"})
    verdicts.append("x", Verdict(False))
    verdicts.append("y", Verdict(None, "which?"))
    verdicts.append("z", Verdict(True))
    verdicts.close()
    assert read_annotations(path) == {"x": False, "y": None, "z": True}


def test_a_cancelled_annotation_does_not_count(export):
    rows = task("a", "right"), task("b", "wrong", cancelled=True)
    assert read_annotations(export(*rows)) == {"a": True}


def test_an_argilla_record_may_hold_the_id_in_its_metadata(export):
    row = record("5f3c-server", "right", metadata={"example_id": "a"})
    assert read_annotations(export(row)) == {"a": True}


@pytest.mark.parametrize("made", [task, record])
def test_annotators_who_contradict_each_other_are_told(export, made):
    rows = made("a", "right"), made("b", "right", "wrong")
    with pytest.raises(InputError, match="annotators contradict each other on 'b'"):
        read_annotations(export(*rows))
    assert read_annotations(export(*rows), skip=True) == {"a": True}


def test_one_of_several_questions_is_named(export):
    row = record("a", "right")
    row["responses"]["fluent"] = [{"value": "no", "user_id": "u"}]
    with pytest.raises(InputError, match=r"several questions \(verdict, fluent\)"):
        read_annotations(export(row))
    assert read_annotations(export(row), "verdict") == {"a": True}


@pytest.mark.parametrize(
    "row, message",
    [
        (task("a", "good"), "its verdict 'good' is none of"),
        (task("a", "right", data={"text": "x"}), "its data hold no example_id"),
        ({"id": 1, "example_id": "a", "verdict": "right", "annotation_id": 3}, "not JSON-MIN"),
        (["a"], "neither a task"),
        ({"labelled": {"correct": True}}, "its labelled hold no example_id"),
        ({"labelled": {"example_id": "a"}}, "does not say whether it is 'correct'"),
        ({"labelled": {"example_id": "a", "correct": "yes"}}, "does not say whether it is"),
    ],
)
def test_what_cannot_be_read_is_said(export, row, message):
    with pytest.raises(InputError, match=message):
        read_annotations(export(row, task("z", "right")))


def test_an_id_that_comes_twice_is_refused(export):
    with pytest.raises(InputError, match="duplicate id 'a'"):
        read_annotations(export(task("a", "right"), task("a", "right")))


def test_an_export_without_a_verdict_is_refused(export):
    with pytest.raises(InputError, match="holds no verdict"):
        read_annotations(export(task("a")))
