"""Write the hyperparameter sensitivity as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.hyperparameter_sensitivity import hyperparameter_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    columns = ["task", "setting", "level", "metric", "mean", "sd"]
    table = hyperparameter_table(
        read_parquet(snakemake.input[0], columns), params.models, params.tasks, params.study["main"]
    )
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
