"""Real benchmark rows from local files go through the same rules, whatever the model is worth."""

import re

import polars as pl
import pytest

from tracecal.estimators.registry import ESTIMATORS

pytestmark = pytest.mark.runs

ROWS = {"svamp": "svamp/{split}.jsonl", "truthfulqa": "truthfulqa/generation_817.jsonl"}


@pytest.fixture(scope="module")
def real(finished, shared_data):
    """A run of a model of the demo on real rows."""
    tasks = [
        {"slug": slug, "path": str(shared_data / path), "limit": 60, "training_limit": 0}
        for slug, path in ROWS.items()
    ]
    config = finished.variant(
        "real",
        run="real",
        models=[{"slug": "linked", "source": {"path": "demo/models/smoke-small"}}],
        tasks=tasks,
        # Without training rows, what is trained on them cannot run.
        estimators=[one.id for one in ESTIMATORS if not one.supervised],
        encoders={
            "similarity": {"source": {"path": "demo/encoders/smoke-similarity"}},
            "importance": {"source": None},
        },
        sampling={"answers": 3, "equivalence": "exact"},
        study={
            "main": {"models": ["linked"], "tasks": list(ROWS)},
            "all_tables": True,
            "cross": {"models": ["linked"], "tasks": list(ROWS)},
        },
    )
    finished.snakemake(config=config)
    return finished.root / "results/real"


@pytest.mark.parametrize("task", ROWS)
def test_every_answer_is_traced_and_judged(real, task):
    traces = pl.read_ipc(real / f"traces/linked/{task}.arrow")
    labels = pl.read_parquet(real / f"labels/linked/{task}.parquet")
    assert traces.height == labels.height == 60
    assert traces["token_ids"].list.len().max() <= 64
    assert labels.filter("correct")["error_kind"].null_count() == labels["correct"].sum()
    assert labels.filter(~pl.col("correct"))["error_kind"].null_count() == 0


def test_what_one_class_leaves_undefined_is_null_counted_and_said(real):
    metrics = pl.read_parquet(real / "metrics.parquet").filter(task="truthfulqa")
    accuracy = pl.read_parquet(real / "analyses/accuracy.parquet").filter(task="truthfulqa")
    assert accuracy["correct"].item() == 0, "an untrained model is not expected to be right"
    auroc = metrics.filter(metric="auroc")
    assert auroc["value"].null_count() == auroc.height
    # An answer without text has no relevant token and no phrase, and a reply may hold no number:
    # these leave answers out. Whatever has an answer left has its proper scores.
    partial = ["token_sar", "mars", "verbalized"]
    partial += [one.id for one in ESTIMATORS if set(one.built_on) & set(partial)]
    leaves_out, evaluated = pl.col("estimator").is_in(partial), 60 - round(0.35 * 60)
    assert (auroc.filter(~leaves_out)["n"] == evaluated).all()
    assert (auroc.filter(leaves_out)["n"] <= evaluated).all()
    brier = metrics.filter(metric="brier")
    assert (brier["value"].is_null() == (brier["n"] == 0)).all()
    html = (real / "tables/main_comparison.html").read_text(encoding="utf-8")
    assert re.search(
        r"the mean leaves out: .*AUROC on [^;]*TruthfulQA \((\d+) of \1 splits\)", html
    )


def test_a_linked_folder_is_left_as_it_was(real):
    folder = real / "models/linked"
    assert (folder / "model.safetensors").is_symlink()
    source = real.parents[1] / "demo/models/smoke-small"
    mark = {".snakemake_timestamp"}  # Snakemake writes it into folders that rules make.
    names, linked = ({file.name for file in path.iterdir()} - mark for path in (source, folder))
    assert linked == names
