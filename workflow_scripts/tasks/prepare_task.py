"""Load a task's rows into the one table that every later step reads."""

from tracecal.errors import InputError
from tracecal.jobs.job import job
from tracecal.storage.files import write_parquet
from tracecal.tasks.load import load
from tracecal.tasks.prepared import table_digest
from tracecal.tasks.rows import Rows

with job(snakemake):
    params = snakemake.params
    spec, parent = (
        one and Rows.model_validate_json(one) for one in (params.spec, params.get("parent"))
    )
    rows = load(spec, list(snakemake.input), params.seed, parent)
    if table_digest(rows) != params.table:
        raise InputError(
            f"the rows of {snakemake.wildcards.task} were changed after this run had started; "
            "start snakemake again."
        )
    write_parquet(rows, snakemake.output[0])
