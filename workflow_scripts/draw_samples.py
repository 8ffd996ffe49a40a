"""Sample several answers to each of a task's evaluation prompts."""

import torch

from tracecal.decode.model import load_model, load_tokenizer
from tracecal.decode.prompt import ask
from tracecal.decode.sampling import SAMPLES, sample_task
from tracecal.decode.traces import write_decoded
from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.tasks.asking import Asking
from tracecal.tasks.roles import evaluated

with job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params, resources = snakemake.params, snakemake.resources
    asking = Asking.model_validate_json(params.asking)
    task = evaluated(read_parquet(snakemake.input.task, ["question"]), snakemake.input.task)
    tokenizer = load_tokenizer(snakemake.input.model)
    rows = sample_task(
        load_model(snakemake.input.model, **params.loading, device_map=resources.device_map),
        tokenizer,
        ask(tokenizer, task, asking, params.chat),
        asking,
        resources.batch_size,
        params.answers,
        params.temperature,
        params.seed,
    )
    policy = f"{params.answers} samples at temperature {params.temperature:g}"
    write_decoded(
        rows,
        SAMPLES,
        snakemake.output[0],
        policy,
        model=snakemake.wildcards.model,
        revision=snakemake.input.revision,
        dtype=params.loading["dtype"],
        seed=params.seed,
    )
