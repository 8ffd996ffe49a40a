"""Link a local model folder into the run."""

from trace_job import job
from trace_workflow.models.folders import link_model

with job(snakemake):
    params = snakemake.params
    link_model(params.path, snakemake.output[0], content=params.content)
