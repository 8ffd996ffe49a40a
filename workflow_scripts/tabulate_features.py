"""Write the definitions of TRACE+'s features as LaTeX, CSV and HTML."""

from tracecal.job import job
from tracecal.render.feature_definitions import feature_table
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    table = feature_table(snakemake.params.features, snakemake.params.excluded)
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
