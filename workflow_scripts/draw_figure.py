"""Draw one figure as PDF and SVG."""

from importlib import import_module

from trace_job import job
from trace_workflow.figures import figure_style
from tracecal.estimators.estimator import Entry
from tracecal.io.files import read_parquet

with job(snakemake):
    module = import_module(f"trace_workflow.figures.{snakemake.wildcards.figure}")
    settings, words = dict(snakemake.params.settings), snakemake.params.words
    if "entries" in settings:
        settings["entries"] = [Entry(**fields) for fields in settings["entries"]]
    # A single file is read here; of one file per pair the figure gets the paths.
    frames = {
        name: read_parquet(paths) if isinstance(paths, str) else paths
        for name, paths in snakemake.input.items()
    }
    figure = module.draw(**frames, **settings)
    figure_style.save(
        figure, snakemake.output.pdf, snakemake.output.svg, words["title"], words["caption"]
    )
