"""Train the embedded sentence encoder from scratch."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from transformers.utils.logging import disable_progress_bar

from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.encoder import EncoderSettings
from tracecal.world.similarity import train_similarity

with job(snakemake):
    disable_progress_bar()
    train_similarity(
        read_parquet(snakemake.input.taught, ["prompt", "answer"]),
        snakemake.input.tokenizer,
        EncoderSettings(**snakemake.params.training),
        snakemake.output[0],
    )
