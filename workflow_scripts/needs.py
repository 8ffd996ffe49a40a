"""List the disk space and GPU memory that the models of a run need."""

from huggingface_hub.utils import disable_progress_bars

from trace_job import job
from trace_workflow.models.needs import needs
from tracecal.io.files import atomic_write

with job(snakemake, online=True):
    disable_progress_bars()
    table = needs(snakemake.params.models, snakemake.params.tasks)
    with atomic_write(snakemake.output[0]) as part:
        table.write_csv(part, separator="\t", float_precision=3)
