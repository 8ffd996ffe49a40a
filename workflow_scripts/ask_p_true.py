"""Let one model judge each of its answers to a task as true or false."""

import torch

from tracecal.decode.asked import answered
from tracecal.decode.model import load_model, load_tokenizer
from tracecal.decode.p_true import P_TRUE, judge_answers, judging_prompts
from tracecal.decode.traces import write_decoded
from tracecal.job import job

with job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    tokenizer = load_tokenizer(paths.model)
    rows = judge_answers(
        load_model(paths.model, **params.loading, device_map=resources.device_map),
        tokenizer,
        judging_prompts(
            tokenizer,
            answered(paths.traces, paths.task, params.stop),
            params.prompt,
            params.start,
            params.chat,
        ),
        resources.batch_size,
    )
    write_decoded(
        rows,
        P_TRUE,
        snakemake.output[0],
        "the next token's raw distribution",
        model=snakemake.wildcards.model,
        revision=paths.revision,
        dtype=params.loading["dtype"],
        seed=params.seed,
        prompt=params.prompt,
        start=params.start,
    )
