"""Write the table named by the wildcard as LaTeX, CSV and HTML."""

from dataclasses import replace
from importlib import import_module

from trace_job import job
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import as_in_paper
from tracecal.estimators.estimator import Entry
from tracecal.io.files import read_parquet, write_checked
from tracecal.io.regular_files import write_text

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    study = StudyResults(frames, estimators, **params.settings)
    table = getattr(import_module(params.module), params.function)(study)
    table = replace(table, name=snakemake.wildcards.table, **params.words)
    if params.as_printed:
        table = as_in_paper(table)
    write_text(render_latex(table), output.tex)
    write_checked(render_csv(table), output.csv)
    write_text(render_html(table), output.html)
