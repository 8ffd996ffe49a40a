"""The example's configuration and the task of CONTRIBUTING.md run as they are written."""

import re
import subprocess

import polars as pl
import pytest
import yaml

pytestmark = pytest.mark.runs


def test_the_example_needs_a_models_folder_and_nothing_else(extended):
    example = (extended.root / "config/example.yaml").read_text(encoding="utf-8")
    assert example.count("/models/my-model") == 1
    mine = extended.root / "config/mine.yaml"
    mine.write_text(example.replace("/models/my-model", "demo/models/smoke-small"))
    process = extended.snakemake(config=mine)
    assert "token_sar is left out: token_sar needs encoders.similarity" in process.stdout
    accuracy = pl.read_parquet(extended.root / "results/mine/analyses/accuracy.parquet")
    assert accuracy.select("task", "n").rows() == [("cities", 300)]
    findings = (extended.root / "results/mine/findings.txt").read_text(encoding="utf-8")
    assert findings.startswith("Most answers of My Model ran to the limit of tokens: 300 of 300")
    assert "All answers of My Model on Cities are wrong" in findings.splitlines()[1]
    assert "nan" not in findings.lower()


def test_the_task_of_contributing_runs_as_it_is_written(extended):
    section = (extended.root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = section.partition("## Add a task\n")[2].partition("\n## ")[0]
    blocks = {
        kind: re.findall(rf"^```{kind}\n(.+?)^```$", section, re.M | re.S)
        for kind in ("diff", "json", "yaml")
    }
    (diff,), (row,), (named,) = blocks.values()
    subprocess.run(["git", "apply", "-"], cwd=extended.root, input=diff, text=True, check=True)
    (extended.root / "data").mkdir()
    rows = "".join(row.replace('"r1"', f'"r{i}"') for i in range(60))
    (extended.root / "data/riddles.jsonl").write_text(rows, encoding="utf-8")
    example = yaml.safe_load((extended.root / "config/example.yaml").read_text(encoding="utf-8"))
    example["models"][0]["source"]["path"] = "demo/models/smoke-small"
    settings = {**example, "run": "riddles", **yaml.safe_load(named)}
    config = extended.root / "config/riddles.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    extended.snakemake(config=config)
    accuracy = pl.read_parquet(extended.root / "results/riddles/analyses/accuracy.parquet")
    assert accuracy.select("task", "n").rows() == [("riddles", 60)]
