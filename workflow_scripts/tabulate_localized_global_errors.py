"""Write the table localized_global_errors as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.averages import Entry
from tracecal.render.localized import localized_global_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    table = localized_global_table(
        read_parquet(snakemake.input[0], ["estimator", "slice", "metric", "value"]),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study["main"],
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
