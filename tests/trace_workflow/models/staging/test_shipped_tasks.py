"""The shipped task files read the four benchmarks as the hub holds them: real rows."""

from pathlib import Path

import polars as pl
import pytest

from support.benchmarks import LANGUAGES, serve
from trace_workflow.config.task_tables import load
from trace_workflow.config.tasks import TaskSpec
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import parse

TASK_FILES = Path(__file__).parents[4] / "config/tasks"

EXPECTED = {
    "svamp": (300, 700),
    "triviaqa": (1000, 500),
    "truthfulqa": (817, 0),
    "mlqa": (1000, 280),
}


@pytest.mark.parametrize("folder", ["", "laptop/"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_shipped_task_is_staged_and_read(hub, client, tmp_path, shared_data, name, folder):
    spec = parse(TaskSpec, read_yaml(TASK_FILES / f"{folder}{name}.yaml"), name)
    source = spec.source
    evaluation, training = EXPECTED[name]
    serve(hub, name, spec, shared_data)
    paths = [str(tmp_path / f"{part.name}.parquet") for part in spec.row_files()]
    calls = []
    for part, path in zip(spec.row_files(), paths, strict=True):
        config = source.config and part.fill(source.config)
        calls.append(["rows", source.hub, config, source.revision, part.split, path])
    assert [result[0] for result in client.stage(*calls)] == ["ok"] * len(paths)
    rows = load(spec, paths, seed=1)
    counts = dict(rows.group_by("role").len().iter_rows())
    assert counts.get("evaluation") == evaluation
    assert counts.get("training", 0) == training
    assert rows["references"].list.len().min() >= 1
    if name == "mlqa":
        assert sorted(rows["language"].unique()) == LANGUAGES
        assert rows.filter(pl.col("group_id") == pl.col("example_id")).is_empty()
