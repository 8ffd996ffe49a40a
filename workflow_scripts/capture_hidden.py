"""Record the hidden state of the last prompt token of a task's examples, evaluated or training."""

import polars as pl

from trace_job import job
from trace_workflow.models.hidden_states import HIDDEN, hidden_task
from trace_workflow.models.step import DecodingStep, record
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_arrow

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = DecodingStep.of(snakemake)
    rows = read_parquet(paths.task, ["example_id", "role"])
    examples = rows.filter(pl.col("role").is_in(["evaluation", "training"]))
    traces = read_arrow(paths.traces, ["example_id", "prompt_token_ids"])
    prompts = traces.join(examples, on="example_id", how="semi").to_dicts()
    policy = f"prefill, hidden state of the last prompt token at depth {params.depth:g}"
    record(step, prompts, HIDDEN, policy, hidden_task, params.depth, resources.batch_size)
