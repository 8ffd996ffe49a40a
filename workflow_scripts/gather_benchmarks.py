"""Gather what the jobs' benchmark files measured into one table: LaTeX, CSV and HTML."""

from pathlib import Path

from tracecal.job import job
from tracecal.render.costs import costs, costs_table, count_tokens, read_benchmarks
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params, output = snakemake.params, snakemake.output
    results = Path(snakemake.input.metrics).parent
    benchmarks = read_benchmarks(results / "benchmarks", list(params.models))
    frame = costs(benchmarks, count_tokens(results, params.pairs))
    write_table(costs_table(frame, params.models), output.tex, output.csv, output.html)
