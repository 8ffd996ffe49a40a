"""Tabulate the time and memory in the jobs' benchmarks as LaTeX, CSV and HTML."""

from pathlib import Path

from trace_job import job
from trace_workflow.tables.costs import costs_table, count_tokens, read_benchmarks, sum_costs
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from tracecal.io.files import write_checked
from tracecal.io.regular_files import write_text

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    results = Path(snakemake.input.config).parent
    jobs = read_benchmarks(results / "benchmarks", list(params.models))
    costs = sum_costs(jobs, count_tokens(results, params.pairs))
    table = costs_table(costs, params.models, **params.words)
    write_text(render_latex(table), output.tex)
    write_checked(render_csv(table), output.csv)
    write_text(render_html(table), output.html)
