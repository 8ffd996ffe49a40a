"""Train one of the embedded encoders from scratch: the one named by the wildcard."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from importlib import import_module

from transformers.utils.logging import disable_progress_bar

from trace_workflow.demo.encoder import EncoderSettings
from trace_workflow.jobs.job import job
from tracecal.io.files import read_parquet

with job(snakemake):
    disable_progress_bar()
    encoder = snakemake.wildcards.encoder
    train = getattr(import_module(f"trace_workflow.demo.{encoder}"), f"train_{encoder}")
    train(
        read_parquet(snakemake.input.taught),
        snakemake.input.tokenizer,
        EncoderSettings(**snakemake.params.training),
        snakemake.output[0],
    )
