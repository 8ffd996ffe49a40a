"""Give an overview of the tables, as Markdown beside them."""

from pathlib import Path

from trace_job import job
from trace_workflow.tables.csv_file import read_rows
from trace_workflow.tables.overview import overview
from tracecal.io.files import write_text

with job(snakemake):
    n_rows = {Path(path).stem: len(read_rows(path)) for path in snakemake.input}
    write_text(overview(snakemake.params.titles, n_rows), snakemake.output[0])
