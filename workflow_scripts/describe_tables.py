"""Give an overview of the tables, as Markdown beside them."""

from pathlib import Path

from trace_job import job
from trace_workflow import tables
from trace_workflow.tables.csv_file import read_rows
from tracecal.calibrator.page_frame import render_page
from tracecal.io.regular_files import write_text

with job(snakemake):
    n_rows = {Path(path).stem: len(read_rows(path)) for path in snakemake.input}
    template, titles = Path(tables.__file__).with_name("overview.md"), snakemake.params.titles
    page = render_page(template, "The tables of this run", titles=titles, n_rows=n_rows)
    write_text(f"{page}\n", snakemake.output[0])
