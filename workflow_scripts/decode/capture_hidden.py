"""Record the hidden state of the last prompt token of a task's examples, evaluated or training."""

import polars as pl

from tracecal.decode.hidden import HIDDEN, hidden_task
from tracecal.decode.record import record
from tracecal.decode.traces import read_arrow
from tracecal.jobs.job import job
from tracecal.jobs.step import Step
from tracecal.storage.files import read_parquet

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    rows = read_parquet(paths.task, ["example_id", "role"])
    wanted = rows.filter(pl.col("role").is_in(["evaluation", "training"]))
    asked = read_arrow(paths.traces, ["example_id", "prompt_token_ids"])
    prompts = asked.join(wanted, on="example_id", how="semi").to_dicts()
    policy = f"prefill, hidden state of the last prompt token at depth {params.depth:g}"
    arguments = params.depth, resources.batch_size
    record(step, prompts, HIDDEN, policy, hidden_task, *arguments)
