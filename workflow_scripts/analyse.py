"""Make the analysis named by the wildcard."""

from importlib import import_module

from trace_job import job
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import write_parquet

with job(snakemake):
    settings = dict(snakemake.params.settings)
    files = StudyFiles(dict(snakemake.input.items()), settings.pop("pairs", ()))
    analysis = getattr(import_module(snakemake.params.module), snakemake.params.function)
    write_parquet(analysis(files, **settings), snakemake.output[0])
