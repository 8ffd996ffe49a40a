"""Write the table spike_modeling as LaTeX, CSV and HTML."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render.spikes import spike_modeling_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    found = read_parquet(snakemake.input[0], ["model", "tasks"])
    table = spike_modeling_table(found, params.models, params.tasks, params.study["main"])
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
