"""Write the run's findings, a line each."""

from tracecal.explore.headline import findings
from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet, write_text
from tracecal.tables.settings import Entry, Settings

with job(snakemake):
    params = snakemake.params
    frames = {name: read_parquet(path, []) for name, path in snakemake.input.items()}
    estimators = [Entry(**fields) for fields in params.estimators]
    settings = Settings(estimators, **params.settings)
    text = "".join(f"{sentence}\n" for sentence in findings(frames, settings))
    write_text(text, snakemake.output[0])
