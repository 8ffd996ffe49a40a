"""Make the analysis named by the wildcard."""

from importlib import import_module

from trace_workflow.jobs.job import job
from tracecal.io.files import write_parquet

with job(snakemake):
    module = import_module(snakemake.params.module)
    frame = module.analysis(**dict(snakemake.input.items()), **snakemake.params.settings)
    write_parquet(frame, snakemake.output[0])
