"""The script of the analyses on made-up results: from files to files."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from support.arrow_files import write_arrow
from support.scripts import run_script
from trace_workflow.analyses.averages import average_pooled
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.estimators.features import answer_features
from tracecal.io.traces import provenance
from tracecal.statistics.splits import make_splits

TASKS = ("a", "b")
PAIRS = [["m", task] for task in TASKS]
BOOTSTRAP = [1, 40, 0.9]
TRACES = pa.schema(
    {
        "example_id": pa.string(),
        "surprisal": pa.list_(pa.float32()),
        "entropy": pa.list_(pa.float32()),
    }
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What a run has of one model on two tasks."""
    root = tmp_path_factory.mktemp("results")
    for seed, task in enumerate(TASKS):
        rng = np.random.default_rng(seed)
        ids = [f"e{i:02}" for i in range(60)]
        correct = rng.random(60) < 0.5
        values = [rng.gamma(0.5 + 0.5 * (not right), size=rng.integers(4, 20)) for right in correct]
        rows = [
            {"example_id": one, "surprisal": risk.tolist(), "entropy": risk.tolist()}
            for one, risk in zip(ids, values, strict=True)
        ]
        path = root / f"traces-{task}.arrow"
        write_arrow(rows, TRACES, provenance("m", "r", "float32", "greedy", 1), path)
        features = answer_features(pl.DataFrame(rows))
        alone = pl.DataFrame({"example_id": ids, "group_id": ids})
        splits = make_splits(alone, task, 1, 3, 0.35)
        scored = features.select("example_id", seq_logp=-pl.col("trace_risk"), mars="len_norm_logp")
        frames = {
            "features": features,
            "labels": pl.DataFrame(
                {
                    "example_id": ids,
                    "correct": correct,
                    "error_kind": [None if right else "entity" for right in correct],
                }
            ),
            "tasks": alone,
            "splits": splits,
            "scores": scored,
            "predictions": splits.filter(part="evaluation").select(
                "example_id",
                "split",
                estimator=pl.lit("trace_plus"),
                probability=pl.int_range(pl.len()) / pl.len(),
            ),
        }
        for folder, frame in frames.items():
            frame.write_parquet(root / f"{folder}-{task}.parquet")
    return root


def run(analysis, results, kinds, pairs=PAIRS, module=None, **settings):
    """The analysis of `pairs` from these kinds of their files."""
    module = f"trace_workflow.analyses.{module or analysis}"
    ends = {"traces": "arrow"}
    inputs = {
        kind: [results / f"{kind}-{task}.{ends.get(kind, 'parquet')}" for _, task in pairs]
        for kind in kinds.split()
    }
    output = results / f"{analysis}.parquet"
    run_script(
        "analyse.py",
        results,
        input=inputs,
        output={"analysis": output},
        params={
            "module": module,
            "function": "analysis",
            "settings": {"pairs": pairs} | settings,
        },
        modules=(module,),
        analysis=analysis,
    )
    found = pl.read_parquet(output)
    assert set(found["model"]) == {"m"}
    return found


@pytest.mark.parametrize(("name", "n"), [("spike_strata", [20] * 6), ("spike_quintiles", [8] * 5)])
def test_spike_strata(results, name, n):
    kinds = "features labels tasks"
    found = run(name, results, kinds, module="spike_strata", bootstrap=BOOTSTRAP, name=name)
    assert found["n"].to_list() == n
    assert set(found["tasks"]) == {"a b"}


def test_spike_modeling_and_its_averages(results):
    found = run("spike_modeling", results, "features labels splits", method="platt")
    assert found.height == 5 * 3 * 2
    assert set(found["n"]) == {2 * 39}
    files = StudyFiles({"measured": results / "spike_modeling.parquet"})
    averages = average_pooled(files, what="features")
    assert averages.height == 5 * 2
    assert set(averages["splits"]) == {3}


@pytest.mark.parametrize("errors", ["localized_global_errors", "localized_error_subtypes"])
@pytest.mark.parametrize("scored", [["seq_logp", "mars"], ["seq_logp"]])
def test_localized_errors_with_and_without_mars(results, errors, scored):
    found = run(
        errors,
        results,
        "scores predictions features labels tasks",
        module="localized_errors",
        name=errors,
        scored=scored,
        learned=["trace_plus"],
        named_baseline="seq_logp",
        bootstrap=BOOTSTRAP,
    )
    assert set(found["estimator"]) == {*scored, "trace_plus", "gain"}
    overall = found.filter(slice="localized", metric="auroc", estimator="seq_logp")
    assert overall["value"].item() > 0.5
    absent = "global" if errors == "localized_global_errors" else "claim"
    assert found.filter(slice=absent)["value"].null_count() == found.filter(slice=absent).height


def test_local_risk(results):
    found = run("local_risk", results, "traces features labels")
    labels = pl.concat(
        pl.read_parquet(results / f"labels-{task}.parquet").with_columns(task=pl.lit(task))
        for task in TASKS
    )
    for correct in (False, True):
        own, those = (frame.filter(correct=correct) for frame in (found, labels))
        assert 0 < own.height <= 24
        assert own.join(those, on=["task", "example_id"], how="anti").is_empty()
    wrong = labels.filter(~pl.col("correct"))
    assert set(found.filter(~pl.col("correct"))["answers"]) == {wrong.height}


def test_without_a_finished_pair_the_user_is_told(results):
    with pytest.raises(SystemExit):
        run("spike_modeling", results, "features labels splits", pairs=[], method="platt")
    assert "no (model, task) pair" in (results / "logs" / "job.log").read_text()
