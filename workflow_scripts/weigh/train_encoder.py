"""Train one of the embedded encoders from scratch: the one named by the wildcard."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from importlib import import_module

from transformers.utils.logging import disable_progress_bar

from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.encoder import EncoderSettings

with job(snakemake):
    disable_progress_bar()
    encoder = snakemake.wildcards.encoder
    train = getattr(import_module(f"tracecal.world.{encoder}"), f"train_{encoder}")
    train(
        read_parquet(snakemake.input.taught),
        snakemake.input.tokenizer,
        EncoderSettings(**snakemake.params.training),
        snakemake.output[0],
    )
