"""Write the fingerprint of a model folder."""

from trace_job import job
from trace_workflow.models.folders import fingerprint
from tracecal.io.files import write_checked

with job(snakemake):
    write_checked(fingerprint(snakemake.input.model) + "\n", snakemake.output[0])
