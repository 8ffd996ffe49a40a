"""Write the fingerprint of a model folder."""

from tracecal.jobs.job import job
from tracecal.stage.folder import fingerprint
from tracecal.storage.files import write_checked

with job(snakemake):
    write_checked(fingerprint(snakemake.input.model) + "\n", snakemake.output[0])
