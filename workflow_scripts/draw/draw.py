"""Draw one figure as PDF and SVG."""

from importlib import import_module

from tracecal.figures import style
from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet
from tracecal.tables.settings import Entry

with job(snakemake):
    figure = import_module(f"tracecal.figures.{snakemake.wildcards.figure}")
    settings, words = dict(snakemake.params.settings), snakemake.params.words
    if "entries" in settings:
        settings["entries"] = [Entry(**fields) for fields in settings["entries"]]
    # A single file is read here; of one file per pair the figure gets the paths.
    frames = {
        name: read_parquet(paths) if isinstance(paths, str) else paths
        for name, paths in snakemake.input.items()
    }
    drawn = figure.draw(**frames, **settings)
    style.save(drawn, snakemake.output.pdf, snakemake.output.svg, words["title"], words["caption"])
