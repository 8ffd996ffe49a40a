"""Load a task's rows into the one table that every later step reads."""

from tracecal.errors import InputError
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet
from tracecal.tasks.load import load_local, load_world
from tracecal.tasks.prepared import table_digest
from tracecal.tasks.rows import Rows

with job(snakemake):
    spec = Rows.model_validate_json(snakemake.params.spec)
    seed = snakemake.params.seed
    if spec.source.world is not None:
        rows = load_world(spec, read_parquet(snakemake.input.world), seed)
    else:
        # One named file reaches a script as a string, several as a list.
        given = snakemake.input.rows
        rows = load_local(spec, [given] if isinstance(given, str) else list(given), seed)
        if spec.source.path and table_digest(rows) != snakemake.params.held:
            raise InputError(
                f"the rows of {snakemake.wildcards.task} were changed after this run had started; "
                "start snakemake again."
            )
    write_parquet(rows, snakemake.output[0])
