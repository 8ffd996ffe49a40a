"""Put the shards of a (model, task) together."""

from tracecal.decode.record import gather
from tracecal.job import job

with job(snakemake):
    gather(snakemake.input, snakemake.output[0])
