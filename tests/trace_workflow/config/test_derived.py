"""The rows of tasks that are made of parts of another task's answers."""

import json

import polars as pl
import pytest

from trace_workflow.config.task_tables import SCHEMA, load
from trace_workflow.config.tasks import Rows, TaskSpec
from tracecal.errors import InputError
from tracecal.io.files import write_parquet

ROWS = [
    {"id": "pe", "q": "Peru", "all": "x", "capital": "Lima", "money": {"names": ["Sol", "PEN"]}},
    {"id": "fr", "q": "France", "all": "y", "capital": ["Paris"], "money": {"names": ["Euro"]}},
    {"id": "xx", "q": "Nowhere", "all": "z", "capital": None, "money": {"names": ["None"]}},
]
PARENT = {
    "label": "Records",
    "source": {"path": "rows.jsonl"},
    "fields": {"id": "id", "question": "q", "references": "all"},
    "correctness": "alias",
}
PARTS = {
    "label": "Facts",
    "source": {"parts_of": "records"},
    "parts": {"json": ["capital", "currency"]},
    "references": {"currency": "money.names"},
    "correctness": {"capital": "contains", "currency": "alias"},
}


def spec(**changes):
    return TaskSpec.model_validate(PARTS | changes)


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """The parent's specification and its files: its table and its rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    task = TaskSpec.model_validate(PARENT)
    write_parquet(load(task, ["rows.jsonl"], 1), "records.parquet")
    return task, ["records.parquet", "rows.jsonl"]


def test_rows_are_questions_by_parts_with_the_references_that_the_parents_rows_name(parent):
    task, files = parent
    rows = load(spec(), files, 1, task)
    assert rows.schema == SCHEMA | {"parent_id": pl.String, "part": pl.String}
    found = rows.select("example_id", "group_id", "question", "references").rows()
    assert found == [
        ("fr/capital", "fr", "France", ["Paris"]),
        ("fr/currency", "fr", "France", ["Euro"]),
        ("pe/capital", "pe", "Peru", ["Lima"]),
        ("pe/currency", "pe", "Peru", ["Sol", "PEN"]),
        ("xx/currency", "xx", "Nowhere", ["None"]),  # no capital, no row
    ]
    assert rows["parent_id"].to_list() == ["fr", "fr", "pe", "pe", "xx"]


def test_the_conclusion_is_judged_by_the_references_of_the_whole_answer(parent):
    task, files = parent
    final = spec(parts={"final": "####"}, references={}, correctness="alias")
    rows = load(final, files, 1, task)
    assert rows["example_id"].to_list() == ["fr/final", "pe/final", "xx/final"]
    assert rows["references"].to_list() == [["y"], ["x"], ["z"]]


def test_a_field_that_no_row_has_is_answered_with_those_there_are(parent):
    task, files = parent
    with pytest.raises(InputError, match="no row has the field 'currency'.*'currency'.*capital"):
        load(spec(references={}), files, 1, task)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"parts": None}, "must be given together"),
        ({"fields": {"question": "q", "references": "a"}}, "'fields' is not allowed"),
        ({"parts": {"sentences": True}}, "'sentences' are parts of answers in files"),
        ({"parts": {"json": ["items[].price"]}}, r"items\[0\].price"),
        ({"references": {"capitol": "x"}}, "did you mean 'capital'"),
        ({"limit": 3}, "'limit' is not allowed"),
        ({"correctness": {"capital": "alias"}}, "one for each part: the parts are capital, curr"),
        ({"correctness": {"capital": "alias", "currency": "x"}}, "must be numeric, alias"),
        ({"prompt": "{question}?"}, "'prompt' is not allowed .* nothing is asked again"),
        ({"source": {"parts_of": "a", "hub": "b/c"}}, "give exactly one of"),
    ],
)
def test_what_a_task_of_parts_may_not_say(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        spec(**changes)


def test_a_rules_parameter_gives_the_task_back():
    for one in (spec(), spec(parts={"final": "####"}, references={}, correctness="alias")):
        again = Rows.model_validate_json(one.part(Rows))
        assert (again.parts, again.references) == (one.parts, one.references)
        assert TaskSpec.model_validate(one.model_dump(mode="json", by_alias=True)) == one


def test_a_task_of_whole_answers_has_neither_parts_nor_a_rule_for_each():
    with pytest.raises(ValueError, match="must be given together"):
        TaskSpec.model_validate(PARENT | {"parts": {"lines": ["a"]}})
    with pytest.raises(ValueError, match="the task has no 'parts'"):
        TaskSpec.model_validate(PARENT | {"correctness": {"a": "alias"}})
