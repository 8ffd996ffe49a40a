"""Train one embedded model from scratch."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from transformers.utils.logging import disable_progress_bar

from trace_workflow.demo.training import Settings, train_model
from trace_workflow.jobs.job import job
from tracecal.io.files import read_parquet

with job(snakemake):
    disable_progress_bar()
    train_model(
        read_parquet(snakemake.input.corpus, ["family", "prompt", "answer"]),
        snakemake.input.tokenizer,
        Settings(**snakemake.params.training),
        snakemake.output.model,
        snakemake.wildcards.model,
    )
