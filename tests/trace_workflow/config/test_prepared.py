"""Rows are what their table holds; what that is, is worked out once."""

import json
from pathlib import Path

import pytest

from support.scripts import run_script
from trace_workflow.config import task_tables
from trace_workflow.config.task_digests import prepared_digest
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.digests import REMEMBERED

ROWS = [{"q": f"What is {n} + 1?", "a": str(n + 1)} for n in range(9)]
SPEC = Rows.model_validate(
    {"source": {"path": "rows.jsonl"}, "fields": {"question": "q", "references": "a"}}
).model_dump_json()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    token = REMEMBERED.set(str(tmp_path / "digests"))
    yield
    REMEMBERED.reset(token)


def made(seed=1, code="pass"):
    """The digest by a script whose code is `code`; each has a name of its own, as it is cached."""
    script = Path(f"{len(code)}.py").resolve()
    script.write_text(code, encoding="utf-8")
    return prepared_digest(SPEC, ["rows.jsonl"], seed, script)


def held(rows, ends="\n"):
    text = "".join(json.dumps(row) + ends for row in rows)
    Path("rows.jsonl").write_bytes(text.encode())
    return made()


def test_what_changes_no_row_of_the_table_changes_nothing():
    first = held(ROWS)
    assert held(ROWS[::-1], ends="\r\n") == first
    assert held([*ROWS, ROWS[0], {"q": "", "a": "1"}, {"q": "Who?", "a": None}]) == first
    assert held([row | {"unused": 1} for row in ROWS]) == first
    assert held(ROWS[1:]) != first
    assert held([ROWS[0] | {"a": "2 "}, *ROWS[1:]]) != first


def test_rows_that_are_known_are_not_read_again(monkeypatch):
    first = held(ROWS)
    assert made(code="other = 1") == first
    monkeypatch.setattr(task_tables, "load", None)
    assert made() == first
    with pytest.raises(TypeError):
        made(code="another_version = 1")


def test_a_file_that_is_not_there_is_said_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=f"rows.jsonl cannot be read in {tmp_path}"):
        made()


def test_rows_that_change_while_a_run_goes_on_are_refused(tmp_path):
    params = {"spec": SPEC, "seed": 1, "table": held(ROWS)}

    def prepare():
        files = {"input": {"rows": "rows.jsonl"}, "output": {"task": tmp_path / "out.parquet"}}
        run_script("prepare_task.py", tmp_path, params=params, **files, task="mine")

    prepare()
    held(ROWS[1:])
    with pytest.raises(SystemExit):
        prepare()
    log = (tmp_path / "logs/job.log").read_text(encoding="utf-8")
    assert "the rows of mine were changed after this run had started" in log
