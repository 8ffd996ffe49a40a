"""Describe the columns of the tables' CSVs, as Markdown beside them."""

from pathlib import Path

from tracecal.jobs.job import job
from tracecal.storage.files import write_text
from tracecal.tables.columns import described
from tracecal.writers import csv

with job(snakemake):
    params = snakemake.params
    tables = {Path(path).stem: csv.columns(path) for path in snakemake.input}
    page = described(tables, params.titles, params.tasks, params.estimators)
    write_text(page, snakemake.output[0])
