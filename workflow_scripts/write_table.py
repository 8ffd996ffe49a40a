"""Write the table named by the wildcard as LaTeX, CSV and HTML."""

from dataclasses import replace
from importlib import import_module

from trace_workflow.jobs.job import job
from trace_workflow.tables.settings import Settings
from trace_workflow.tables.table import as_printed
from trace_workflow.tables.write import write_table
from tracecal.estimators.entry import Entry
from tracecal.io.files import read_parquet

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    made = import_module(params.module).table(frames, Settings(estimators, **params.settings))
    table = replace(made, name=snakemake.wildcards.table, **params.words)
    if params.as_printed:
        table = as_printed(table)
    write_table(table, output.tex, output.csv, output.html)
