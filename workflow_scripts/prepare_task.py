"""Load a task's rows into the one table that every later step reads."""

from trace_job import job
from trace_workflow.config.task_digests import table_digest
from trace_workflow.config.task_tables import load
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.files import write_parquet

with job(snakemake):
    params = snakemake.params
    spec, parent = (
        text and Rows.model_validate_json(text) for text in (params.spec, params.get("parent"))
    )
    rows = load(spec, list(snakemake.input), params.seed, parent)
    if table_digest(rows) != params.table:
        raise InputError(
            f"the rows of {snakemake.wildcards.task} were changed after this run had started; "
            "start snakemake again."
        )
    write_parquet(rows, snakemake.output[0])
