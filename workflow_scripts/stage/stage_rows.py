"""Fetch a split of a benchmark from the hub."""

from tracecal.jobs.job import job
from tracecal.stage.rows import stage_rows
from tracecal.storage.files import write_text

with job(snakemake, online=True):
    source = snakemake.params.source
    commit = stage_rows(
        source["hub"],
        source["config"],
        source["revision"],
        source["split"],
        snakemake.output.rows,
    )
    write_text(f"{commit}\n", snakemake.output.revision)
