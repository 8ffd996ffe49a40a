"""Train one embedded model from scratch."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from transformers.utils.logging import disable_progress_bar

from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.train import Settings, train_model

with job(snakemake):
    disable_progress_bar()
    train_model(
        read_parquet(snakemake.input.corpus, ["family", "prompt", "answer"]),
        snakemake.input.tokenizer,
        Settings(**snakemake.params.training),
        snakemake.output.model,
        snakemake.wildcards.model,
    )
