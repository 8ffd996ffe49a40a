"""Draw where the risk of wrong answers lies as PDF and SVG."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import style
from tracecal.render.local_risk import local_risk_aggregation

with job(snakemake.log[0]):
    figure = local_risk_aggregation(read_parquet(snakemake.input[0], ["entropy", "peak_start"]))
    style.save(figure, snakemake.output.pdf, snakemake.output.svg)
