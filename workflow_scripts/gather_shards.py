"""Join the shards of a model and task into the file that a single job would write."""

import pyarrow as pa

from trace_job import job
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.traces import arrow_metadata, read_table, write_table

with job(snakemake):
    paths, output = snakemake.input, snakemake.output
    tables = [read_table(path).replace_schema_metadata() for path in paths.traces]
    write_table(pa.concat_tables(tables), arrow_metadata(paths.traces[0]), output[0])
    if paths.get("questions"):  # each shard has those of the whole task
        write_parquet(read_parquet(paths.questions[0]), output.questions)
