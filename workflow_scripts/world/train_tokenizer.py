"""Train the tokenizer that the embedded models share."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet
from tracecal.world.tokenizer import save_tokenizer

with job(snakemake):
    corpus = read_parquet(snakemake.input.corpus, ["prompt", "answer"])
    save_tokenizer(corpus, snakemake.params.vocabulary, snakemake.output.tokenizer)
