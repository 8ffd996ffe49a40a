"""A run's costs: time, memory and speed of each step and model, from the benchmarks of its jobs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from trace_workflow.tables.table import Column, Table
from tracecal.errors import InputError

LIGHT_SHARE, REST = 0.01, "all else"
# Seconds between Snakemake's first look at a job, whose processes have hardly begun, and its next.
UNSEEN = 0.5
# The folder of a step's generated tokens, and an expression for their number in a row.
TOKEN_FOLDERS = {
    "generate": ("traces", pl.col("token_ids").list.len()),
    "search_beams": ("beams", pl.col("beam_length").list.sum()),
    "draw_samples": ("samples", pl.col("token_ids").list.len()),
}
MEASURED = {"s": pl.Float64, "cpu_time": pl.Float64, "max_rss": pl.Float64}


def read_benchmarks(folder: Path, models: Sequence[str]) -> pl.DataFrame:
    """A row per job's benchmark under `folder`: `step`, `model`, `wall`, `cpu`, `memory`.

    Times are in seconds, memory in MiB; a step without a model has None there. Snakemake knows
    neither processor time nor memory of a job that ended before it looked: both are None. A path
    gives step and model: `{step}.tsv`, or `{step}/{model}/…`. Raises `InputError` where there is no
    benchmark.
    """
    frames = []
    for path in sorted(folder.rglob("*.tsv")):
        step, *rest = path.relative_to(folder).with_suffix("").parts
        model = next((part for part in rest if part in models), None)
        options = {"separator": "\t", "null_values": ["NA", "-"], "schema_overrides": MEASURED}
        benchmark = pl.read_csv(path, columns=[*MEASURED], **options)
        frames.append(
            benchmark.select(
                pl.lit(step).alias("step"), pl.lit(model, pl.String).alias("model"), *MEASURED
            )
        )
    if not frames:
        raise InputError(f"{folder} holds no benchmark of a finished job, which Snakemake writes.")
    is_measured = pl.col("s") > UNSEEN
    return pl.concat(frames).select(
        "step",
        "model",
        wall="s",
        cpu=pl.when(is_measured).then("cpu_time"),
        memory=pl.when(is_measured).then("max_rss"),
    )


def count_tokens(results: Path, pairs: Sequence[Sequence[str]]) -> pl.DataFrame:
    """The `tokens` that each `step` of TOKEN_FOLDERS generated with each `model`.

    `pairs` are (model, task); those without a file are skipped. A beam search counts every beam.
    """
    counts = [
        {"step": step, "model": model, "tokens": pl.read_ipc(path).select(length.sum()).item() or 0}
        for step, (name, length) in TOKEN_FOLDERS.items()
        for model, task in pairs
        if (path := results / name / model / f"{task}.arrow").exists()
    ]
    schema = {"step": pl.String, "model": pl.String, "tokens": pl.Int64}
    return pl.DataFrame(counts, schema).group_by("step", "model").agg(pl.col("tokens").sum())


def sum_costs(jobs: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """A row per step and model: `jobs`, wall and CPU seconds, peak memory (MiB), tokens and speed.

    The speed counts tokens per second of wall time, loading the model included. The last row sums
    the steps below LIGHT_SHARE of the wall time. Unknown figures are left out of sums; a sum of
    unknown ones is None.
    """
    light = pl.col("wall").sum().over("step") < LIGHT_SHARE * pl.col("wall").sum()
    cpu = pl.col("cpu")
    return (
        jobs.with_columns(
            step=pl.when(light).then(pl.lit(REST)).otherwise("step"),
            model=pl.when(~light).then("model"),
        )
        .group_by("step", "model")
        .agg(
            jobs=pl.len().cast(pl.Int64),
            wall_seconds=pl.col("wall").sum().round(2),
            cpu_seconds=pl.when(cpu.count() > 0).then(cpu.sum().round(2)),
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
        notes=(f"Processor time and memory of jobs that end within {UNSEEN} s are unknown.",),
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
