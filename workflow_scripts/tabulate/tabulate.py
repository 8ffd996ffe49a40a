"""Write the table named by the wildcard as LaTeX, CSV and HTML."""

from importlib import import_module

from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.tables.settings import Entry, Settings
from tracecal.writers.table import as_printed
from tracecal.writers.write import write_table

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    frames = {name: read_parquet(path, []) for name, path in snakemake.input.items()}
    settings = Settings(
        **params.words,
        **params.settings,
        estimators=[Entry(*fields) for fields in params.estimators],
    )
    module = import_module(f"tracecal.tables.{snakemake.wildcards.table}")
    table = module.table(frames, settings)
    if params.as_printed:
        table = as_printed(table)
    write_table(table, output.tex, output.csv, output.html)
