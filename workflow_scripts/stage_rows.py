"""Fetch a split of a benchmark from the hub."""

from trace_job import job
from trace_workflow.models.staging.hub_rows import stage_rows
from tracecal.io.regular_files import write_text

with job(snakemake, online=True):
    source = snakemake.params.source
    commit = stage_rows(
        source["hub"], source["config"], source["revision"], source["split"], snakemake.output.rows
    )
    write_text(f"{commit}\n", snakemake.output.revision)
