"""A task of parts that is added to a finished run: only it and the aggregates are computed."""

import hashlib

import polars as pl
import pytest

from tests.tracecal.explorer.test_page import unpacked

pytestmark = pytest.mark.runs

RESULTS = "results/smoke"
TASK = """
label: Conclusions
source: {parts_of: arithmetic}
parts: {final: '='}
correctness: numeric
"""
REASONING = TASK.replace("'='}", "'=', reasoning: alone}")
OWN = (
    *("prepare_task", "draw_splits", "cut_parts", "label_answers", "compute_features"),
    *(f"estimate_{family}" for family in ("likelihood", "entropy", "trajectory", "trace", "ces")),
    *("join_scores", "calibrate", "measure", "control_risk", "resample"),
)


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
    (broken.root / "reasoning.yaml").write_text(REASONING, encoding="utf-8")
    smoke = broken.smoke()
    smoke["study"]["parts"] = {"models": ["demo-small"], "tasks": ["conclusions", "reasoning"]}
    added = {"conclusions": "final.yaml", "reasoning": "reasoning.yaml"}
    tasks = [*smoke["tasks"], *({"slug": slug, "file": file} for slug, file in added.items())]
    config = broken.variant("parts", tasks=tasks, study=smoke["study"])
    scheduled = broken.scheduled(config)
    assert {rule: scheduled.get(rule) for rule in OWN} == dict.fromkeys(OWN, len(added))
    assert {"localisation", "part_scores"} <= set(scheduled)
    others = "generate audit_traces learn_lars learn_probe weigh_mars search_beams"
    assert not {*others.split()} & set(scheduled)

    before = held(broken.root)
    pair = "demo-small/conclusions"
    made = [f"{RESULTS}/labels/{pair}.parquet", f"{RESULTS}/work/answered/{pair}.parquet"]
    explorer = f"{RESULTS}/explorer.html"
    splits = [f"{RESULTS}/splits/{task}.parquet" for task in added]
    reasoning = f"{RESULTS}/traces/demo-small/reasoning.arrow"
    broken.snakemake(*made, explorer, *splits, reasoning, config=config)
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
    thoughts = pl.read_ipc(broken.root / reasoning).join(traces, on="example_id", suffix="_final")
    assert thoughts.height == traces.height
    assert (thoughts["start"] == 0).all() and (thoughts["end"] == thoughts["start_final"]).all()
    drawn = [pl.read_parquet(broken.root / path) for path in splits]
    assert drawn[0].equals(drawn[1])
    shown = unpacked((broken.root / explorer).read_text(encoding="utf-8"))
    tasks = [one["id"] for one in shown["named"]["task"]]
    part_rows = [
        at for at, name in zip(*map(shown["places"].get, ("row", "part")), strict=True) if name
    ]
    assert {tasks[shown["answers"]["task"][at]] for at in part_rows} == {*added}
    assert len(part_rows) == 2 * labels.height
