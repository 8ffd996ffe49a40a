"""Put the bibliography beside the tables that cite it."""

from trace_job import job
from trace_workflow.config import paper
from tracecal.io.regular_files import write_text

with job(snakemake):
    write_text(paper.BIBLIOGRAPHY.read_text(encoding="utf-8"), snakemake.output[0])
