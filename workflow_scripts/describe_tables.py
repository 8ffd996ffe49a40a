"""Describe the columns of the tables' CSVs, as Markdown beside them."""

from pathlib import Path

from trace_job import job
from trace_workflow.tables.columns import describe_tables
from trace_workflow.tables.csv_file import read_column_names
from tracecal.io.files import write_text

with job(snakemake):
    params = snakemake.params
    tables = {Path(path).stem: read_column_names(path) for path in snakemake.input}
    page = describe_tables(tables, params.titles, params.tasks, params.estimators)
    write_text(page, snakemake.output[0])
