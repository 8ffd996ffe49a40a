"""What Snakemake's records lack is noticed, and results say themselves what made them."""

import json
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from tracecal.provenance import MADE_WITH, settings_hash
from tracecal.storage.files import atomic_folder, write_json, write_parquet
from tracecal.storage.records import record_of, unrecorded, up_to_date

RUN, RECORDS = Path("results/r"), Path(".snakemake/metadata")
TABLE, AUDIT, MODEL = RUN / "x/a.parquet", RUN / "audits/m/t.json", RUN / "models/m"
REVISION = RUN / "work/revisions/m.json"


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Results of every kind, made with the settings {}, and their records."""
    monkeypatch.chdir(tmp_path)
    made = MADE_WITH.set(settings_hash({}))
    write_parquet(pl.DataFrame({"a": [1]}), TABLE)
    write_json({}, AUDIT)
    write_json({}, REVISION)
    with atomic_folder(MODEL) as part:
        write_json({}, part / "config.json")
    write_parquet(pl.DataFrame({"a": [1]}), RUN / "work/journals/a.parquet")
    MADE_WITH.reset(made)
    for path in (TABLE, AUDIT, MODEL, REVISION):
        record = record_of(path, RECORDS)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"params": []}))


@pytest.mark.parametrize("path", [TABLE, AUDIT, MODEL, REVISION])
def test_a_record_that_is_gone_or_damaged_is_missed(path):
    assert unrecorded(RUN, RECORDS.parent) == []
    record = record_of(path, RECORDS)
    whole = record.read_bytes()
    for damaged in (b"", whole[:7], bytes(len(whole)), b"{}", b"[]"):
        record.write_bytes(damaged)
        assert unrecorded(RUN, RECORDS.parent) == [path], damaged
    record.unlink()
    assert unrecorded(RUN, RECORDS.parent) == [path]
    mark = record_of(path, RECORDS.with_name("incomplete"))
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    assert unrecorded(RUN, RECORDS.parent) == []


@pytest.mark.parametrize("path", [TABLE, AUDIT, MODEL, REVISION])
def test_without_a_record_the_result_says_whether_it_is_up_to_date(path):
    for params in ({}, {"seed": 2}):
        job = Mock(output=[path], params=params)
        dag = Mock(dependencies={job: {}})
        dag.toposorted.return_value = [[job]]
        dag.needrun.return_value = False
        dag.reason.return_value.no_metadata = True
        assert up_to_date(dag) == {job: not params}
