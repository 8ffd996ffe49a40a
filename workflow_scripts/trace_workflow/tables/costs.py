"""A run's costs: time, memory and speed of each step and model, from its jobs' logs.

1. `read_job_costs` reads the logs, `count_tokens` the files of generated tokens.
2. `sum_costs` adds them up by step and model.
3. `costs_table` prints the sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from trace_workflow.jobs.resource_usage import spent_by
from trace_workflow.tables.table import Column, Table
from tracecal.errors import InputError

LIGHT_SHARE, REST = 0.01, "all else"
# The folder of a step's generated tokens, and an expression for their number in a row.
TOKEN_FOLDERS = {
    "generate": ("traces", pl.col("token_ids").list.len()),
    "search_beams": ("beams", pl.col("beam_length").list.sum()),
    "draw_samples": ("samples", pl.col("token_ids").list.len()),
}


def read_job_costs(folder: Path, models: Sequence[str]) -> pl.DataFrame:
    """A row per finished job's log under `folder`: `step`, `model`, `wall`, `cpu`, `memory`.

    Times are in seconds, memory in MiB; a step without a model has None there. A log's path gives
    step and model: `{step}.log`, or `{step}/{model}/…`. Raises `InputError` where there is no log.
    """
    rows = []
    for path in sorted(folder.rglob("*.log")):
        step, *rest = path.relative_to(folder).with_suffix("").parts
        if costs := spent_by(path):
            model = next((part for part in rest if part in models), None)
            rows.append({"step": step, "model": model, **asdict(costs)})
    if not rows:
        raise InputError(f"{folder} holds no log of a finished job, which the workflow writes.")
    return pl.DataFrame(rows, schema_overrides={"model": pl.String})


def count_tokens(results: Path, pairs: Sequence[Sequence[str]]) -> pl.DataFrame:
    """The `tokens` that each `step` of TOKEN_FOLDERS generated with each `model`.

    `pairs` are (model, task); those without a file are skipped. A beam search counts every beam.
    """
    counts = [
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
    return pl.DataFrame(counts, schema).group_by("step", "model").agg(pl.col("tokens").sum())


def sum_costs(jobs: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """A row per step and model: `jobs`, wall and CPU seconds, peak memory (MiB), tokens and speed.

    The speed counts tokens per second of wall time, loading the model included. The last row sums
    the steps below LIGHT_SHARE of the CPU time.
    """
    light = pl.col("cpu").sum().over("step") < LIGHT_SHARE * pl.col("cpu").sum()
    return (
        jobs.with_columns(
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


def costs_table(costs: pl.DataFrame, labels: Mapping[str, str], title: str, caption: str) -> Table:
    """The sums as a table; `labels` has the models' names by id."""
    label = pl.col("model").replace_strict(labels, default=None, return_dtype=pl.String)
    return Table(
        name="costs",
        title=title,
        caption=caption,
        frame=costs.select("step", "model", label.alias("label"), pl.exclude("step", "model")),
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
