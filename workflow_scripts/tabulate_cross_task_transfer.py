"""Write the table of the cross-task transfer as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import bounds
from tracecal.render.averages import COLUMNS, Entry
from tracecal.render.cross_task_transfer import cross_task_transfer_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    table = cross_task_transfer_table(
        read_parquet(inputs.metrics, COLUMNS),
        read_parquet(inputs.intervals, bounds.COLUMNS),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study["main"],
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
