"""Join the shards of a model and task into the file that a single job would write."""

import pyarrow as pa

from trace_job import job
from tracecal.io.traces import arrow_metadata, read_table, write_table

with job(snakemake):
    tables = [read_table(path).replace_schema_metadata() for path in snakemake.input]
    write_table(pa.concat_tables(tables), arrow_metadata(snakemake.input[0]), snakemake.output[0])
