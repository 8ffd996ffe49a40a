"""Write the run's findings, a line each."""

from trace_workflow.jobs.job import job
from trace_workflow.tables.findings import findings
from trace_workflow.tables.settings import Settings
from tracecal.estimators.entry import Entry
from tracecal.io.files import read_parquet, write_text

with job(snakemake):
    params = snakemake.params
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    settings = Settings(estimators, **params.settings)
    text = "".join(f"{sentence}\n" for sentence in findings(frames, settings))
    write_text(text, snakemake.output[0])
