"""Record the hidden state of the last prompt token of a task's examples, both roles."""

import torch

from tracecal.decode.hidden import HIDDEN, hidden_task
from tracecal.decode.model import load_model
from tracecal.decode.traces import read_arrow, write_decoded
from tracecal.job import job

with job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params, resources = snakemake.params, snakemake.resources
    prompts = read_arrow(snakemake.input.traces, ["example_id", "prompt_token_ids"])
    rows = hidden_task(
        load_model(snakemake.input.model, **params.loading, device_map=resources.device_map),
        prompts.to_dicts(),
        params.depth,
        resources.batch_size,
    )
    policy = f"prefill, hidden state of the last prompt token at depth {params.depth:g}"
    write_decoded(
        rows,
        HIDDEN,
        snakemake.output[0],
        policy,
        model=snakemake.wildcards.model,
        revision=snakemake.input.revision,
        dtype=params.loading["dtype"],
        seed=params.seed,
    )
