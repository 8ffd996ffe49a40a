"""Draw the spike evidence as PDF and SVG."""

from tracecal.files import read_parquet
from tracecal.job import job
from tracecal.render import style
from tracecal.render.spike_evidence import spike_evidence

with job(snakemake.log[0]):
    figure = spike_evidence(
        read_parquet(snakemake.input.strata, ["incorrect_rate"]),
        read_parquet(snakemake.input.quintiles, ["incorrect_rate"]),
    )
    style.save(figure, snakemake.output.pdf, snakemake.output.svg)
