"""Set a table beside the paper's published numbers, as CSV and HTML."""

from trace_workflow.config import paper
from trace_workflow.jobs.job import job
from trace_workflow.tables import write
from trace_workflow.tables.beside_paper import side_by_side
from tracecal.io.files import write_text

with job(snakemake):
    name = snakemake.wildcards.table
    table = side_by_side(name, write.read(snakemake.input[0]), paper.read()[name])
    write_text(write.render_csv(table), snakemake.output.csv)
    write_text(write.render_html(table), snakemake.output.html)
