"""Decode a task's answers with one model and record their traces."""

import torch

from tracecal.decode.answers import answer_task
from tracecal.decode.model import load_model, load_tokenizer
from tracecal.decode.prompt import ask
from tracecal.decode.traces import TRACES, write_decoded
from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.tasks.asking import Asking

with job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params, resources = snakemake.params, snakemake.resources
    asking = Asking.model_validate_json(params.asking)
    task = read_parquet(snakemake.input.task, ["example_id", "question", "context"])
    tokenizer = load_tokenizer(snakemake.input.model)
    rows = answer_task(
        load_model(snakemake.input.model, **params.loading, device_map=resources.device_map),
        tokenizer,
        ask(tokenizer, task, asking, params.chat),
        asking,
        resources.batch_size,
    )
    policy = f"greedy, at most {asking.max_new_tokens} tokens, stop strings {list(asking.stop)}"
    write_decoded(
        rows,
        TRACES,
        snakemake.output[0],
        policy,
        model=snakemake.wildcards.model,
        revision=snakemake.input.revision,
        dtype=params.loading["dtype"],
        seed=params.seed,
    )
