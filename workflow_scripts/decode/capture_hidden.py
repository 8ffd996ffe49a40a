"""Record the hidden state of the last prompt token of a task's examples, both roles."""

from tracecal.decode.hidden import HIDDEN, hidden_task
from tracecal.decode.record import record
from tracecal.decode.traces import read_arrow
from tracecal.job import job

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    prompts = read_arrow(paths.traces, ["example_id", "prompt_token_ids"]).to_dicts()
    policy = f"prefill, hidden state of the last prompt token at depth {params.depth:g}"
    arguments = params.depth, resources.batch_size
    record(snakemake, prompts, HIDDEN, policy, hidden_task, *arguments)
