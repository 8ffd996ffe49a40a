"""Write the table of reliability and selective prediction as LaTeX, CSV and HTML."""

from tracecal.analyse.reliability_selective import POOLED
from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.averages import Entry
from tracecal.render.reliability_selective import reliability_selective_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    table = reliability_selective_table(
        read_parquet(snakemake.input[0], list(POOLED)),
        [Entry(*fields) for fields in params.estimators],
        params.models,
        params.tasks,
        params.study["main"],
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
