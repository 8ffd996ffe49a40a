"""Write the run's findings, a line each, and the same as a table with their numbers."""

import polars as pl

from trace_job import job
from trace_workflow.tables.finding import findings_frame
from trace_workflow.tables.findings import find_all
from trace_workflow.tables.study_results import StudyResults
from tracecal.estimators.estimator import Entry
from tracecal.io.files import read_parquet, write_checked
from tracecal.io.regular_files import write_text
from tracecal.io.spreadsheet_cells import escape_formula

with job(snakemake):
    params = snakemake.params
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    findings = find_all(StudyResults(frames, estimators, **params.settings))
    text = "".join(f"{finding.sentence}\n" for finding in findings)
    write_text(text, snakemake.output.txt)
    escaped = pl.col(pl.String).map_elements(escape_formula, return_dtype=pl.String)
    write_checked(findings_frame(findings).with_columns(escaped).write_csv(), snakemake.output.csv)
