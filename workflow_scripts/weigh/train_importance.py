"""Train the embedded model of phrases from scratch."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from transformers.utils.logging import disable_progress_bar

from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.encoder import EncoderSettings
from tracecal.world.importance import train_importance

with job(snakemake):
    disable_progress_bar()
    train_importance(
        read_parquet(snakemake.input.taught, ["question", "reply", "starts", "point"]),
        snakemake.input.tokenizer,
        EncoderSettings(**snakemake.params.training),
        snakemake.output[0],
    )
