"""Load a task's rows into the one table that every later step reads."""

from tracecal.errors import InputError
from tracecal.job import job
from tracecal.storage.files import write_parquet
from tracecal.tasks.load import load
from tracecal.tasks.prepared import table_digest
from tracecal.tasks.rows import Rows

with job(snakemake):
    spec = Rows.model_validate_json(snakemake.params.spec)
    rows = load(spec, list(snakemake.input), snakemake.params.seed)
    if table_digest(rows) != snakemake.params.table:
        raise InputError(
            f"the rows of {snakemake.wildcards.task} were changed after this run had started; "
            "start snakemake again."
        )
    write_parquet(rows, snakemake.output[0])
