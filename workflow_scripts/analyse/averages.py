"""Average the metrics over splits, tasks and models, and those of each language over splits."""

from tracecal.analyse.averages import averages
from tracecal.calibrate.metrics import METRICS
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, output, studies = snakemake.input, snakemake.output, snakemake.params.studies
    metrics = read_parquet(inputs.metrics, list(METRICS))
    write_parquet(averages(metrics, studies), output.averages)
    languages = read_parquet(inputs.languages, [*METRICS, "language"])
    write_parquet(averages(languages, {}, by=["language"]), output.languages)
