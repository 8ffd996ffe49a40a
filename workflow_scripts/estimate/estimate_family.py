"""Score a task's evaluated answers with the estimators of one family."""

from importlib import import_module

from tracecal.estimate.scores import family_scores
from tracecal.jobs.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    family = import_module(f"tracecal.estimate.{snakemake.wildcards.family}")
    params = snakemake.params
    answers = family.answers(**dict(snakemake.input.items()), **params.settings)
    write_parquet(family_scores(answers, family.SCORES, params.chosen), snakemake.output[0])
