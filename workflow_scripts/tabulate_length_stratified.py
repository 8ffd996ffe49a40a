"""Write the table of short, medium and long answers as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.averages import COLUMNS, Entry
from tracecal.render.length_stratified import length_stratified_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    table = length_stratified_table(
        read_parquet(snakemake.input[0], [*COLUMNS, "stratum"]),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study["main"],
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
