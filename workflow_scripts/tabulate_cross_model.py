"""Write the cross-model comparison as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import averages, bounds
from tracecal.render.averages import Entry
from tracecal.render.cross_model import cross_model
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    table = cross_model(
        read_parquet(snakemake.input.metrics, averages.COLUMNS),
        read_parquet(snakemake.input.intervals, bounds.COLUMNS),
        read_parquet(snakemake.input.accuracy, ["model", "task", "accuracy"]),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study,
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
