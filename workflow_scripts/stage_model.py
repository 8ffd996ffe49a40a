"""Fetch a model from the hub and link it into the run."""

from trace_job import job
from trace_workflow.models.staging.hub import stage_model
from tracecal.io.files import write_checked

with job(snakemake, online=True):
    source = snakemake.params.source
    commit = stage_model(source["hub"], source["revision"], snakemake.output.model)
    write_checked(f"{commit}\n", snakemake.output.revision)
