"""Train the embedded classifier of entailment from scratch."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from transformers.utils.logging import disable_progress_bar

from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.encoder import EncoderSettings
from tracecal.world.entailment import train_entailment
from tracecal.world.replies import DISCUSSION_SCHEMA

with job(snakemake):
    disable_progress_bar()
    train_entailment(
        read_parquet(snakemake.input.taught, list(DISCUSSION_SCHEMA)),
        snakemake.input.tokenizer,
        EncoderSettings(**snakemake.params.training),
        snakemake.output[0],
    )
