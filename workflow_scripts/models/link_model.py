"""Link a local model folder into the run."""

from tracecal.jobs.job import job
from tracecal.stage.folder import link_model

with job(snakemake):
    params = snakemake.params
    link_model(params.path, snakemake.output[0], content=params.content)
