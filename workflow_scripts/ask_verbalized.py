"""Ask one model how sure it is of each of its answers to a task."""

import torch

from tracecal.decode.asked import answered
from tracecal.decode.model import load_model, load_tokenizer
from tracecal.decode.traces import write_decoded
from tracecal.decode.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.job import job
from tracecal.progress import LOGGER
from tracecal.tasks.asking import Asking

with job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    answers = answered(paths.traces, paths.task, asking.stop)
    rows = confidence_replies(
        load_model(paths.model, **params.loading, device_map=resources.device_map),
        tokenizer,
        second_turns(tokenizer, answers, asking, params.prompt, params.chat),
        asking.stop,
        resources.batch_size,
    )
    unstated = sum(row["confidence"] is None for row in rows)
    LOGGER.info("%d of %d replies state no confidence", unstated, len(rows))
    write_decoded(
        rows,
        VERBALIZED,
        snakemake.output[0],
        "greedy",
        model=snakemake.wildcards.model,
        revision=paths.revision,
        dtype=params.loading["dtype"],
        seed=params.seed,
        prompt=params.prompt,
        without_confidence=str(unstated),
    )
