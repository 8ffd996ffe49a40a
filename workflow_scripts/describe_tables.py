"""Describe the columns of the tables' CSVs, as Markdown beside them."""

from pathlib import Path

from trace_workflow.jobs.job import job
from trace_workflow.tables import write
from trace_workflow.tables.columns import described
from tracecal.io.files import write_text

with job(snakemake):
    params = snakemake.params
    tables = {Path(path).stem: write.columns(path) for path in snakemake.input}
    page = described(tables, params.titles, params.tasks, params.estimators)
    write_text(page, snakemake.output[0])
