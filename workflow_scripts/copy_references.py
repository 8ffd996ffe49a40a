"""Put the bibliography beside the tables that cite it."""

from tracecal.files import write_text
from tracecal.job import job
from tracecal.render import references

with job(snakemake.log[0]):
    write_text(references.BIBLIOGRAPHY.read_text(encoding="utf-8"), snakemake.output[0])
