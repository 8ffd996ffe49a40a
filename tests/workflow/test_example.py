"""The example's configuration runs as it is written, with a model's folder alone."""

import polars as pl
import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.runs]


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
    assert findings.startswith("Answers of My Model were cut at the limit of tokens: 300 of 300")
    assert "All answers of My Model on Cities are wrong" in findings.splitlines()[1]
    assert "nan" not in findings.lower()
