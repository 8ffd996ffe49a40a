"""Set a table beside the paper's published numbers, as CSV and HTML."""

from trace_job import job
from trace_workflow.config import paper
from trace_workflow.tables.csv_file import read_rows, render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.paper_comparison import compare_with_paper
from tracecal.io.regular_files import write_text

with job(snakemake):
    name = snakemake.wildcards.table
    table = compare_with_paper(name, read_rows(snakemake.input[0]), paper.read()[name])
    write_text(render_csv(table), snakemake.output.csv)
    write_text(render_html(table), snakemake.output.html)
