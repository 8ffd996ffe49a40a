"""Add to TRACE+'s calibrator the thresholds that promise an error rate among the answers kept."""

import polars as pl

from tracecal.calibrate.risk_control import risk_control
from tracecal.files import read_json, read_parquet, write_json
from tracecal.job import job
from tracecal.tasks.roles import evaluated

with job(snakemake.log[0]):
    calibrators = read_json(snakemake.input.calibrators)
    # A run without TRACE+ has its calibrators as they are.
    if "trace_plus" in calibrators:
        labels = read_parquet(snakemake.input.labels, ["example_id", "correct"])
        answers = evaluated(labels.select("example_id", "correct"), snakemake.input.task)
        groups = read_parquet(snakemake.input.task, ["example_id", "group_id"])
        for columns in (
            groups.select("example_id", "group_id"),
            read_parquet(snakemake.input.features),
        ):
            answers = answers.join(columns, on="example_id", how="left", validate="1:1")
        splits = read_parquet(snakemake.input.splits, ["example_id", "split", "rank", "part"])
        calibrators["trace_plus"]["risk_control"] = risk_control(
            calibrators["trace_plus"],
            answers,
            splits.filter(pl.col("split") == pl.col("split").min()),
            snakemake.params.error_rates,
            snakemake.params.confidence,
        )
    write_json(calibrators, snakemake.output[0])
