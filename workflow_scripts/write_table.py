"""Write the table named by the wildcard as LaTeX, CSV and HTML."""

from dataclasses import replace
from importlib import import_module

from trace_workflow.jobs.job import job
from trace_workflow.tables.study import Study
from trace_workflow.tables.table import as_in_paper
from trace_workflow.tables.table_files import write_table
from tracecal.estimators.entry import Entry
from tracecal.io.files import read_parquet

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    study = Study(frames, estimators, **params.settings)
    table = import_module(params.module).table(study)
    table = replace(table, name=snakemake.wildcards.table, **params.words)
    if params.as_printed:
        table = as_in_paper(table)
    write_table(table, output.tex, output.csv, output.html)
