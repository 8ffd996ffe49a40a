"""Results say themselves what made them, whatever Snakemake's records say."""

from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pyarrow as pa
import pytest

from tracecal.decode.traces import write_table
from tracecal.jobs.provenance import MADE_WITH, settings_hash
from tracecal.storage.files import atomic_folder, write_json, write_parquet
from tracecal.storage.records import judge_by_results, made_otherwise, up_to_date

RUN = Path("results/r")
TABLE, AUDIT, MODEL = RUN / "x/a.parquet", RUN / "audits/m/t.json", RUN / "models/m"
TRACES = RUN / "traces/m/t.arrow"
RESULTS = [TABLE, AUDIT, MODEL, TRACES]


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Results of every kind, made with the settings {}."""
    monkeypatch.chdir(tmp_path)
    made = MADE_WITH.set(settings_hash({}))
    write_parquet(pl.DataFrame({"a": [1]}), TABLE)
    write_table(pa.table({"example_id": ["a"]}), {}, TRACES)
    write_json({}, AUDIT)
    with atomic_folder(MODEL) as part:
        write_json({}, part / "config.json")
    MADE_WITH.reset(made)


@pytest.mark.parametrize("path", RESULTS)
def test_a_result_says_whether_other_settings_made_it(path):
    assert made_otherwise(Mock(output=[path], params={})) == []
    assert made_otherwise(Mock(output=[path], params={"seed": 2})) == [str(path)]


@pytest.mark.parametrize("path", RESULTS)
def test_what_is_not_there_or_says_nothing_is_left_to_snakemake(path):
    path.rename(path.with_name("away"))
    job = Mock(output=[path], params={"seed": 2})
    assert made_otherwise(job) == []
    if path.suffix in (".arrow", ".parquet"):
        path.write_bytes(b"")
    assert made_otherwise(job) == []


def test_snakemakes_own_comparison_is_kept_and_the_results_are_added():
    class Records:
        changed = False

        def params_changed(self, job, file=None):
            return self.changed

        def has_metadata(self, job):
            return False

    judge_by_results(Records)
    records = Records()
    # So that Snakemake compares at all, results that say what made them, and no others.
    assert records.has_metadata(Mock(output=RESULTS))
    assert not records.has_metadata(Mock(output=[__file__]))
    for params in ({}, {"seed": 2}):
        job = Mock(output=RESULTS, params=params)
        assert bool(records.params_changed(job)) is bool(params)
    records.changed = True
    assert records.params_changed(Mock(output=RESULTS, params={})) is True


def test_what_is_made_of_something_out_of_date_is_out_of_date():
    first, second = Mock(), Mock()
    dag = Mock(dependencies={first: {}, second: {first: {}}})
    dag.toposorted.return_value = [[first], [second]]
    dag.needrun.side_effect = lambda job: job is first
    assert up_to_date(dag) == {first: False, second: False}
