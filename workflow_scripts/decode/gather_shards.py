"""Write the rows of a (model, task)'s shards as one file, as if one job had made it."""

import pyarrow as pa

from tracecal.decode.traces import arrow_metadata, read_table, write_table
from tracecal.jobs.job import job

with job(snakemake):
    tables = [read_table(path).replace_schema_metadata() for path in snakemake.input]
    write_table(pa.concat_tables(tables), arrow_metadata(snakemake.input[0]), snakemake.output[0])
