"""Set a table beside the paper's published numbers, as CSV and HTML."""

from tracecal.jobs.job import job
from tracecal.paper import published
from tracecal.paper.beside import side_by_side
from tracecal.storage.files import write_text
from tracecal.writers import csv, html

with job(snakemake):
    name = snakemake.wildcards.table
    table = side_by_side(name, csv.read(snakemake.input[0]), published.read()[name])
    write_text(csv.render(table), snakemake.output.csv)
    write_text(html.render(table), snakemake.output.html)
