"""Train the tokenizer that the embedded models share."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from trace_workflow.demo.training import save_tokenizer
from trace_workflow.jobs.job import job
from tracecal.io.files import read_parquet

with job(snakemake):
    corpus = read_parquet(snakemake.input.corpus, ["prompt", "answer"])
    save_tokenizer(corpus, snakemake.params.vocabulary, snakemake.output.tokenizer)
