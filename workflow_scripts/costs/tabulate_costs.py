"""Gather what the jobs' benchmark files measured into one table: LaTeX, CSV and HTML."""

from pathlib import Path

from tracecal.job import job
from tracecal.tables.costs import costs, costs_table, count_tokens, read_benchmarks
from tracecal.writers.write import write_table

with job(snakemake):
    params, output = snakemake.params, snakemake.output
    results = Path(snakemake.input.config).parent
    benchmarks = read_benchmarks(results / "benchmarks", list(params.models))
    frame = costs(benchmarks, count_tokens(results, params.pairs))
    table = costs_table(frame, params.models, **params.words)
    write_table(table, output.tex, output.csv, output.html)
