"""A run's costs: time, memory and speed of each step and model, from its jobs' logs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from trace_workflow.jobs.resource_usage import spent_by
from trace_workflow.tables.table import Column, Table
from tracecal.errors import InputError

LIGHT, REST = 0.01, "all else"
# The folder of a step's generated tokens, and their number as an expression for one row.
TOKEN_FOLDERS = {
    "generate": ("traces", pl.col("token_ids").list.len()),
    "search_beams": ("beams", pl.col("beam_length").list.sum()),
    "draw_samples": ("samples", pl.col("token_ids").list.len()),
}


def read_spent(folder: Path, models: Sequence[str]) -> pl.DataFrame:
    """One row per log of a finished job under `folder`: its `step`, its `model` (null for a step
    without one), and `wall`, `cpu` (seconds) and `memory` (MiB).

    Step and model are in a log's path: `{step}.log`, or `{step}/{model}/…`. Raises `InputError`
    where there is none.
    """
    rows = []
    for path in sorted(folder.rglob("*.log")):
        step, *rest = path.relative_to(folder).with_suffix("").parts
        if spent := spent_by(path):
            model = next((part for part in rest if part in models), None)
            rows.append({"step": step, "model": model, **asdict(spent)})
    if not rows:
        raise InputError(f"{folder} holds no log of a finished job, which the workflow writes.")
    return pl.DataFrame(rows, schema_overrides={"model": pl.String})


def count_tokens(results: Path, pairs: Sequence[Sequence[str]]) -> pl.DataFrame:
    """The `tokens` that each `step` of `TOKEN_FOLDERS` generated with each `model`, for finished
    (model, task) `pairs`; those of a beam search are summed over its beams.
    """
    counted = [
        {
            "step": step,
            "model": model,
            "tokens": pl.read_ipc(path).select(length.sum()).item() or 0,
        }
        for step, (name, length) in TOKEN_FOLDERS.items()
        for model, task in pairs
        if (path := results / name / model / f"{task}.arrow").exists()
    ]
    schema = {"step": pl.String, "model": pl.String, "tokens": pl.Int64}
    return pl.DataFrame(counted, schema).group_by("step", "model").agg(pl.col("tokens").sum())


def costs(spent: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """One row per step and model: `jobs`, sums of wall and CPU time (seconds), peak memory of any
    process (MiB), tokens, and tokens per second of wall time, loading the model included. Steps
    below `LIGHT` of the CPU time are one row, the last.
    """
    light = pl.col("cpu").sum().over("step") < LIGHT * pl.col("cpu").sum()
    return (
        spent.with_columns(
            step=pl.when(light).then(pl.lit(REST)).otherwise("step"),
            model=pl.when(~light).then("model"),
        )
        .group_by("step", "model")
        .agg(
            jobs=pl.len().cast(pl.Int64),
            wall_seconds=pl.col("wall").sum().round(2),
            cpu_seconds=pl.col("cpu").sum().round(2),
            max_rss_mib=pl.col("memory").max(),
        )
        .join(tokens, on=["step", "model"], how="left")
        .with_columns(
            tokens_per_second=pl.when(pl.col("wall_seconds") > 0).then(
                pl.col("tokens") / pl.col("wall_seconds")
            )
        )
        .sort(pl.col("step") == REST, "step", "model", nulls_last=True)
    )


def costs_table(frame: pl.DataFrame, labels: Mapping[str, str], title: str, caption: str) -> Table:
    """`costs` as a table; `labels` has the models' names by id."""
    label = pl.col("model").replace_strict(labels, default=None, return_dtype=pl.String)
    return Table(
        name="costs",
        title=title,
        caption=caption,
        frame=frame.select("step", "model", label.alias("label"), pl.exclude("step", "model")),
        columns=(
            Column(("step",), "Step", align="left"),
            Column(("label",), "Model", align="left"),
            Column(("jobs",), "Jobs", align="right"),
            Column(("wall_seconds",), "Wall (s)", decimals=1, align="right"),
            Column(("cpu_seconds",), "CPU (s)", decimals=1, align="right"),
            Column(("max_rss_mib",), "Memory (MiB)", decimals=0, align="right"),
            Column(("tokens",), "Tokens", align="right"),
            Column(("tokens_per_second",), "Tokens/s", decimals=1, align="right"),
        ),
    )
