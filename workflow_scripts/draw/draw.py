"""Draw one figure as PDF and SVG."""

from importlib import import_module

from tracecal.figures import style
from tracecal.job import job

with job(snakemake):
    figure = import_module(f"tracecal.figures.{snakemake.wildcards.figure}")
    drawn = figure.draw(**dict(snakemake.input.items()), **snakemake.params.settings)
    words = snakemake.params.words
    style.save(drawn, snakemake.output.pdf, snakemake.output.svg, words["title"], words["caption"])
