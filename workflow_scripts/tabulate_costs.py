"""Gather what the jobs' logs say that they spent into one table: LaTeX, CSV and HTML."""

from pathlib import Path

from trace_workflow.jobs.job import job
from trace_workflow.tables.costs import costs_table, count_tokens, read_job_costs, sum_costs
from trace_workflow.tables.table_files import write_table

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    results = Path(snakemake.input.config).parent
    jobs = read_job_costs(results / "logs", list(params.models))
    costs = sum_costs(jobs, count_tokens(results, params.pairs))
    table = costs_table(costs, params.models, **params.words)
    write_table(table, output.tex, output.csv, output.html)
