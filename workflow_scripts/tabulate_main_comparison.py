"""Write the main comparison as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import averages, bounds
from tracecal.render.averages import Entry
from tracecal.render.comparison import main_comparison
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    table = main_comparison(
        read_parquet(snakemake.input.metrics, averages.COLUMNS),
        read_parquet(snakemake.input.intervals, bounds.COLUMNS),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study,
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
