"""A task of parts that is added to a finished run: only it and the aggregates are computed."""

import hashlib

import polars as pl
import pytest

from explore.test_page import unpacked

pytestmark = pytest.mark.workflow

RESULTS = "results/smoke"
TASK = """
label: Conclusions
source: {parts_of: arithmetic}
parts: {final: '='}
correctness: numeric
"""
OWN = {
    "prepare_task": 1,
    "draw_splits": 1,
    "cut_parts": 1,
    "label_answers": 1,
    "compute_features": 1,
    "estimate_likelihood": 1,
    "estimate_entropy": 1,
    "estimate_trajectory": 1,
    "estimate_trace": 1,
    "estimate_ces": 1,
    "join_scores": 1,
    "calibrate": 1,
    "measure": 1,
    "control_risk": 1,
    "resample": 1,
}


def held(root):
    """The files of the run, but for what is of all pairs together."""
    kinds = "tasks traces audits labels features estimates scores splits predictions picked metrics"
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for kind in kinds.split()
        for path in (root / RESULTS / kind).rglob("*")
        if path.is_file()
    }


def test_parts_of_answers_that_are_there_decode_and_change_nothing(broken):
    (broken.root / "final.yaml").write_text(TASK, encoding="utf-8")
    smoke = broken.smoke()
    smoke["study"]["parts"] = {"models": ["demo-small"], "tasks": ["conclusions"]}
    tasks = [*smoke["tasks"], {"slug": "conclusions", "file": "final.yaml"}]
    config = broken.variant("parts", tasks=tasks, study=smoke["study"])
    scheduled = broken.scheduled(config)
    assert {rule: scheduled.get(rule) for rule in OWN} == OWN
    assert {"localisation", "part_scores", "draw_wrong_parts"} <= set(scheduled)
    others = "generate audit_traces learn_lars learn_probe train_model weigh_mars search_beams"
    assert not {*others.split()} & set(scheduled)

    before = held(broken.root)
    pair = "demo-small/conclusions"
    made = [f"{RESULTS}/labels/{pair}.parquet", f"{RESULTS}/work/answered/{pair}.parquet"]
    explorer = f"{RESULTS}/explorer.html"
    broken.snakemake(*made, explorer, config=config)
    after = held(broken.root)
    assert {path: after[path] for path in before} == before
    labels, rows = (pl.read_parquet(broken.root / path) for path in made)
    assert labels["example_id"].str.ends_with("/final").all()
    roles = dict(rows["role"].value_counts().iter_rows())
    assert roles["evaluation"] == labels.height > 0
    traces = pl.read_ipc(broken.root / f"{RESULTS}/traces/{pair}.arrow")
    whole = pl.read_ipc(broken.root / f"{RESULTS}/traces/demo-small/arithmetic.arrow")
    both = traces.join(whole, left_on="parent_id", right_on="example_id", suffix="_whole")
    for start, end, cut, all_ in both.select(
        "start", "end", "surprisal", "surprisal_whole"
    ).iter_rows():
        assert cut == all_[start:end]
    shown = unpacked((broken.root / explorer).read_text(encoding="utf-8"))
    tasks = [one["id"] for one in shown["named"]["task"]]
    part_rows = [
        at for at, name in zip(*map(shown["places"].get, ("row", "part")), strict=True) if name
    ]
    assert {tasks[shown["answers"]["task"][at]] for at in part_rows} == {"conclusions"}
    assert len(part_rows) == labels.height
