"""Gather what the jobs' logs say that they spent into one table: LaTeX, CSV and HTML."""

from pathlib import Path

from trace_workflow.jobs.job import job
from trace_workflow.tables.costs import costs, costs_table, count_tokens, read_spent
from trace_workflow.tables.write import write_table

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    results = Path(snakemake.input.config).parent
    spent = read_spent(results / "logs", list(params.models))
    frame = costs(spent, count_tokens(results, params.pairs))
    table = costs_table(frame, params.models, **params.words)
    write_table(table, output.tex, output.csv, output.html)
