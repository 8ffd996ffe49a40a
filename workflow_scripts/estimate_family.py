"""Score a task's evaluated answers with the estimators of one family."""

from importlib import import_module

from trace_workflow.jobs.job import job
from tracecal.estimators.reading import family_scores
from tracecal.io.files import write_parquet

with job(snakemake):
    family = import_module(snakemake.params.module)
    params = snakemake.params
    answers = family.answers(**dict(snakemake.input.items()), **params.settings)
    write_parquet(family_scores(answers, family.SCORES, params.chosen), snakemake.output[0])
