"""Labels of tables and of labelling tools' exports, in the shape that these programs write."""

import json

import polars as pl
import pytest

import tracecal
from support.log_rows import write
from tracecal.answers.answers import answers_in
from tracecal.answers.labels import read_labels
from tracecal.answers.log_file import open_rows
from tracecal.answers.reading import Reading
from tracecal.errors import InputError
from tracecal.explorer.page_answers import load_page_answers
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
        "responses": {
            name: [{"value": value, "user_id": f"u{place}"} for place, value in enumerate(verdicts)]
        },
        "vectors": {},
        "status": "completed",
        "_server_id": "5f3c",
    } | more


def verdicts_of(path, question=None, skip=False):
    wrong_rows = "skip" if skip else "stop"
    return read_labels(path, Reading(question=question, wrong_rows=wrong_rows)).by_id


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
    assert verdicts_of(export(*rows)) == expected


def test_a_file_of_label_itself_is_read_like_an_export(tmp_path):
    path = tmp_path / "labelled.jsonl"
    rows = {"x": {"id": "x", "answer": "1", "correct": True}, "y": {"id": "y"}, "z": {"id": "z"}}
    verdicts = VerdictFile(path, rows, {"z": "capital"})
    verdicts.append("x", Verdict(False))
    verdicts.append("y", Verdict(None, "which?"))
    verdicts.append("z", Verdict(True))
    verdicts.close()
    assert verdicts_of(path) == {"x": False, "y": None, "z": True}


def test_a_cancelled_annotation_does_not_count(export):
    rows = task("a", "right"), task("b", "wrong", cancelled=True)
    assert verdicts_of(export(*rows)) == {"a": True}


def test_an_argilla_record_may_hold_the_id_in_its_metadata(export):
    row = record("5f3c-server", "right", metadata={"example_id": "a"})
    assert verdicts_of(export(row)) == {"a": True}


@pytest.mark.parametrize("made", [task, record])
def test_two_annotators_who_disagree_count_as_wrong(export, made, caplog):
    caplog.set_level("INFO")
    path = export(made("a", "right"), made("b", "right", "wrong"))
    assert verdicts_of(path) == verdicts_of(path, skip=True) == {"a": True, "b": False}
    assert "1 contested: counted as wrong" in caplog.text


def test_one_of_several_questions_is_named(export):
    row = record("a", "right")
    row["responses"]["fluent"] = [{"value": "no", "user_id": "u"}]
    with pytest.raises(InputError, match=r"several questions \(verdict, fluent\)"):
        verdicts_of(export(row))
    assert verdicts_of(export(row), "verdict") == {"a": True}


@pytest.mark.parametrize(
    "row, message",
    [
        (task("a", "fine"), "its verdict 'fine' is neither right"),
        (task("a", "right", data={"text": "x"}), "its data hold no example_id"),
        ({"id": 1, "example_id": "a", "verdict": "right"}, "unlike the rows before"),
        (["a"], "no row of a table"),
        ({"labelled": {"correct": True}}, "its labelled hold no example_id"),
        ({"labelled": {"example_id": "a"}}, "does not say whether it is 'correct'"),
        ({"labelled": {"example_id": "a", "correct": "yes"}}, "does not say whether it is"),
    ],
)
def test_what_cannot_be_read_is_said(export, row, message):
    with pytest.raises(InputError, match=message):
        verdicts_of(export(row, task("z", "right")))


def test_a_persons_later_verdict_takes_the_place_of_the_earlier_one(export):
    assert verdicts_of(export(task("a", "right"), task("a", "right"))) == {"a": True}
    assert verdicts_of(export(task("a", "wrong"), task("a", "right"))) == {"a": True}


def test_an_export_without_a_verdict_is_refused(export):
    with pytest.raises(InputError, match="holds no verdict"):
        verdicts_of(export(task("a")))


ANSWERS = [{"id": f"q-{n}", "answer": "x", "logprobs": [-0.1], "correct": True} for n in range(4)]
VERDICTS = [("q-0", "Yes"), ("q-1", "FALSE"), ("q-2", ""), ("q-3", "unsure"), ("z", "no")]
RIGHT_AND_WRONG = [True, False, None, False]


def table(separator):
    return "".join(f"{separator.join(row)}\n" for row in [("Custom_ID", "Label"), *VERDICTS])


def write_labels(path):
    columns = {"custom_id": pl.String, "label": pl.String}
    frame = pl.DataFrame(VERDICTS, schema=columns, orient="row")
    match path.suffix:
        case ".parquet":
            frame.write_parquet(path)
        case ".arrow":
            frame.write_ipc(path, compat_level=pl.CompatLevel.oldest())
        case ".jsonl":
            frame.write_ndjson(path)
        case suffix:
            path.write_text(
                table("\t" if suffix == ".tsv" else ";" if "semi" in path.name else ",")
            )


@pytest.mark.parametrize("name", ["l.csv", "semi.csv", "l.tsv", "l.jsonl", "l.parquet", "l.arrow"])
def test_verdicts_of_a_table_take_the_place_of_the_rows_own(tmp_path, caplog, name):
    path = tmp_path / name
    write_labels(path)
    caplog.set_level("INFO")
    frame = tracecal.read_answers(ANSWERS, reading=tracecal.Reading(labels=str(path)))
    assert frame["correct"].to_list() == RIGHT_AND_WRONG
    assert frame["unsure"].to_list() == [False, False, False, True]
    assert "3 of 4 answers have a verdict (2 wrong, 1 of them unsure)" in caplog.text
    assert "1 answers have none (q-2); 1 verdicts are on no answer (z)" in caplog.text
    # An answer's labels may come after it was read.
    read = tracecal.read_answers(ANSWERS)
    later = tracecal.read_answers(read, reading=tracecal.Reading(labels=str(path)))
    assert later["correct"].to_list() == RIGHT_AND_WRONG


def test_columns_are_named_or_found_and_none_that_matches_is_an_error(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("id,ref,good\n1,q-0,1.0\n2,q-1,0.0\n3,q-2,nan\n")

    def verdicts(spec, **options):
        reading = tracecal.Reading(labels=spec, **options)
        return tracecal.read_answers(ANSWERS, reading=reading)["correct"].to_list()

    assert verdicts(f"{path}:ref:good") == [True, False, None, None]
    with pytest.raises(InputError, match=r"no column looks like the verdict.*l\.csv:id:VERDICT"):
        verdicts(path)
    with pytest.raises(InputError, match=r"\(1, 2\) is the id of one of .*l\.csv:ref:good"):
        verdicts(f"{path}:id:good")
    with pytest.raises(InputError, match="no row has the column verdict; there are id, ref, good"):
        verdicts(f"{path}:ref:verdict")


def test_scores_need_a_threshold_and_the_error_is_short(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("id,score\n" + "".join(f"q-{n},{n / 4}\n" for n in range(400)))
    with pytest.raises(InputError, match=r"Reading\(right_from=0.5\)") as refused:
        read_labels(path)
    message = str(refused.value)
    assert "398 invalid row(s)" in message and message.count("row ") <= 4
    assert read_labels(path, Reading(right_from=0.5)).by_id["q-1"] is False
    assert read_labels(path, Reading(right_from=0.5)).by_id["q-2"] is True


def test_requests_of_a_batch_give_answers_their_prompt_and_settings(tmp_path):
    path = tmp_path / "batch.jsonl"
    sent = {"messages": [{"role": "user", "content": "Who?"}], "temperature": 0}
    path.write_text(json.dumps({"custom_id": "q-1", "url": "/v1/chat/completions", "body": sent}))
    reading = tracecal.Reading(requests=str(path))
    frame = tracecal.read_answers(ANSWERS, reading=reading)
    assert frame["processed"].to_list() == ["unknown", "no", "unknown", "unknown"]
    page = load_page_answers(ANSWERS, reading=reading)
    assert page.texts["question"].to_list() == ["", "Who?", "", ""]
    path.write_text(json.dumps({"custom_id": "other", "body": sent}))
    with pytest.raises(InputError, match="none of its 1 requests"):
        tracecal.read_answers(ANSWERS, reading=reading)


@pytest.mark.parametrize("others", ["cafe\u0301", "Caf\u00e9"])
def test_ids_that_look_alike_match_where_that_is_clear(tmp_path, others):
    path = tmp_path / "labels.csv"
    path.write_text(f"id,correct\n{others},1\n", encoding="utf-8")
    answers = [ANSWERS[0] | {"id": "caf\u00e9"}]
    reading = tracecal.Reading(labels=str(path))
    assert tracecal.read_answers(answers, reading=reading)["correct"].to_list() == [True]
    answers += [ANSWERS[0] | {"id": "CAF\u00c9"}]
    with pytest.raises(InputError, match="differ in case, hyphens, outer blanks or the Unicode"):
        tracecal.read_answers(answers, reading=reading)


def test_a_label_path_that_no_row_has_is_named(caplog):
    tracecal.read_answers(ANSWERS, reading=tracecal.Reading(label="judged.ok"))
    assert "no row has a verdict at Reading(label='judged.ok')" in caplog.text


def test_a_named_path_is_the_only_source_of_verdicts():
    rows = [
        {"id": "a", "answer": "5", "logprobs": [-0.2], "correct": True, "judged": {"ok": False}}
    ]
    rows += [{"id": "b", "answer": "6", "logprobs": [-0.4], "correct": True}]
    reading = tracecal.Reading(label="judged.ok")
    assert tracecal.read_answers(rows, reading=reading)["correct"].to_list() == [False, None]


@pytest.mark.parametrize(
    ("column", "spec", "option"),
    [
        ("request", "l.csv", "--id request"),
        ("my key", "l.csv", "--id 'my key'"),
        ("meta", "l.csv", "--id meta.name"),
    ],
)
def test_ids_that_stand_elsewhere_in_the_answers_rows_are_named(
    tmp_path, monkeypatch, column, spec, option
):
    monkeypatch.chdir(tmp_path)
    ids = [f"q-{number}" for number in range(4)]
    values = [{"name": name} for name in ids] if column == "meta" else ids
    rows = [
        {"id": f"run-{number}", "answer": "x", "logprobs": [-0.1], column: value, "n": 1}
        for number, value in enumerate(values)
    ]
    write(tmp_path / "a.jsonl", rows)
    (tmp_path / "l.csv").write_text("id,correct\n" + "".join(f"{name},yes\n" for name in ids))
    with pytest.raises(InputError, match=r"as .*; add Reading\(id=") as error:
        answers_in("a.jsonl", Reading(labels=spec))
    assert f"; add {option}" in error.value.args[0]
    path = option.removeprefix("--id ").strip("'")
    assert answers_in("a.jsonl", Reading(labels=spec, id=path)).frame["correct"].sum() == 4


def test_a_file_whose_ids_are_others_than_those_of_its_labels_is_opened_once(tmp_path, monkeypatch):
    write(tmp_path / "a.jsonl", [{"id": "b", "answer": "x", "logprobs": [-0.1]}])
    (tmp_path / "l.csv").write_text("id,correct\na,yes\n")
    opened = []
    monkeypatch.setattr(
        "tracecal.answers.answers.open_rows", lambda path: opened.append(path) or open_rows(path)
    )
    with pytest.raises(InputError, match="none of its 1 "):
        answers_in(tmp_path / "a.jsonl", Reading(labels=tmp_path / "l.csv"))
    assert opened == [tmp_path / "a.jsonl"]


def test_a_column_whose_name_has_blanks_is_quoted_for_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.csv").write_text("id,is it so?\na,yes\n")
    with pytest.raises(InputError, match=r"Reading\(labels='l.csv:id:VERDICT'\)\."):
        read_labels("l.csv")
    write(tmp_path / "a.jsonl", [{"id": "b", "answer": "x", "logprobs": [-0.1]}])
    with pytest.raises(InputError, match=r"Reading\(labels='l.csv:ID:is it so\?'\), or") as error:
        answers_in("a.jsonl", Reading(labels="l.csv:id:is it so?"))
    assert "--labels 'l.csv:ID:is it so?', or" in error.value.args[0]
