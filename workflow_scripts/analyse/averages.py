"""Average the metrics over splits, tasks and models, and those of each language over splits."""

from tracecal.analyse.averages import MEASURED, averages
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, output, studies = snakemake.input, snakemake.output, snakemake.params.studies
    metrics = read_parquet(inputs.metrics, list(MEASURED))
    write_parquet(averages(metrics, studies), output.averages)
    languages = read_parquet(inputs.languages, [*MEASURED, "language"])
    write_parquet(averages(languages, {}, by=["language"]), output.languages)
