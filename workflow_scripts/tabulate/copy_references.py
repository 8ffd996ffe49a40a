"""Put the bibliography beside the tables that cite it."""

from tracecal.jobs.job import job
from tracecal.paper import references
from tracecal.storage.files import write_text

with job(snakemake):
    write_text(references.BIBLIOGRAPHY.read_text(encoding="utf-8"), snakemake.output[0])
