"""Write the run's findings, a line each, and the same as a table with their numbers."""

from trace_workflow.jobs.job import job
from trace_workflow.tables.findings import as_frame, findings
from trace_workflow.tables.settings import Settings
from tracecal.estimators.entry import Entry
from tracecal.io.files import read_parquet, write_checked, write_text

with job(snakemake):
    params = snakemake.params
    frames = {name: read_parquet(path) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    told = findings(frames, Settings(estimators, **params.settings))
    write_text("".join(f"{one.sentence}\n" for one in told), snakemake.output.txt)
    write_checked(as_frame(told).write_csv(), snakemake.output.csv)
