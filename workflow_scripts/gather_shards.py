"""Write the rows of a (model, task)'s shards as one file, as if one job had made it."""

import pyarrow as pa

from trace_workflow.jobs.job import job
from tracecal.io.traces import arrow_metadata, read_table, write_table

with job(snakemake):
    tables = [read_table(path).replace_schema_metadata() for path in snakemake.input]
    write_table(pa.concat_tables(tables), arrow_metadata(snakemake.input[0]), snakemake.output[0])
