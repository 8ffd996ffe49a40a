"""A made-up finished run, as far as a log of its answers reads it."""

from pathlib import Path

import polars as pl

from support.task_answers import made_up
from trace_workflow.analyses.risk_coverage import risk_coverage
from tracecal.calibrator.answer_ranking import Ranking, rank_split
from tracecal.calibrator.guarantee import find_guarantees
from tracecal.fits.fit_settings import RiskControl
from tracecal.fits.predictions import calibrate_all
from tracecal.io.files import write_parquet
from tracecal.io.traces import TRACES, provenance, write_table

MODEL, TASK = "demo-small", "arithmetic"
PAIRS = [("demo-medium", TASK), (MODEL, TASK), (MODEL, "extractive")]
ANSWERS = 400


def write_run(root: Path) -> dict[str, pl.DataFrame]:
    """Write the files of all pairs below `root`; what the pair of MODEL and TASK holds."""
    written = {}
    for model, task in PAIRS:
        written[model, task] = _write_pair(root / "results/smoke", model, task)
    controls = [held["control"] for held in written.values()]
    thresholds = risk_coverage(controls, list(written))
    write_parquet(thresholds, root / "results/smoke/analyses/risk_coverage.parquet")
    return written[MODEL, TASK]


def _write_pair(folder: Path, model: str, task: str) -> dict[str, pl.DataFrame]:
    answers, splits = made_up(task, ANSWERS)
    ids = answers["example_id"]
    predictions, fits = calibrate_all(
        answers, splits, {"seq_logp": ["scores.seq_logp"]}, "logistic"
    )
    scores = answers.select("example_id", seq_logp="scores.seq_logp")
    rated = answers.with_columns(represents=True)
    ranking = Ranking.of_split("seq_logp", ["scores.seq_logp"], fits["seq_logp"], rated, splits)
    targets = RiskControl(error_rates=[0.01, 0.3, 0.5], overall_errors=[])
    control = find_guarantees(ranking, rank_split(ranking), targets).model_dump(mode="json")
    tasks = pl.DataFrame(
        {
            "example_id": ids,
            "group_id": ids,
            "role": ["evaluation"] * ANSWERS,
            "language": ["en"] * ANSWERS,
            "question": "What is " + ids + "?",
            "context": pl.Series([None] * ANSWERS, dtype=pl.String),
            "references": [["yes"]] * ANSWERS,
            "distractors": pl.Series([[]] * ANSWERS, dtype=pl.List(pl.String)),
        }
    )
    labels = answers.select(
        "example_id",
        "correct",
        prediction=pl.when("correct").then(pl.lit("yes")).otherwise(pl.lit("no")),
        error_kind=pl.when("correct").then(None).otherwise(pl.lit("number")),
    )
    traces = labels.select(
        "example_id",
        prompt="<|user|>What is " + pl.col("example_id") + "?<|assistant|>",
        prompt_token_ids=pl.lit([1, 2], pl.List(pl.Int32)),
        answer="It is " + pl.col("prediction"),
        token_ids=pl.lit([3, 4, 5], pl.List(pl.Int32)),
        tokens=pl.concat_list(pl.lit("It is "), "prediction", pl.lit("<|end|>")),
        surprisal=pl.lit([0.5, 0.25, 0.125], pl.List(pl.Float32)),
        entropy=pl.lit([1.0, 0.5, 0.25], pl.List(pl.Float32)),
        finish_reason=pl.lit("eos"),
    )
    write_parquet(tasks, folder / f"tasks/{task}.parquet")
    for kind, frame in {"labels": labels, "scores": scores, "predictions": predictions}.items():
        write_parquet(frame, folder / f"{kind}/{model}/{task}.parquet")
    metadata = provenance(model, "sha256:0", "float32", "greedy", 0)
    write_table(traces.to_arrow().cast(TRACES), metadata, folder / f"traces/{model}/{task}.arrow")
    return {"labels": labels, "predictions": predictions, "traces": traces, "control": control}
