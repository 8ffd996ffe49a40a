"""Write the position shift as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.position_shift import position_shift_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    columns = ["task", "quantity", "over", "mean", "sd"]
    table = position_shift_table(
        read_parquet(snakemake.input[0], columns), params.models, params.tasks, params.study["main"]
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
