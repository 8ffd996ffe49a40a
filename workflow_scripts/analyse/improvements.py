"""Set TRACE+ against the best baseline, with intervals; and in each language, without."""

import polars as pl

from tracecal.analyse.averages import AVERAGES
from tracecal.analyse.bootstrap import RESAMPLES
from tracecal.analyse.improvements import gains, improvements
from tracecal.job import job
from tracecal.storage.files import read_parquet, write_parquet

with job(snakemake):
    inputs, output, params = snakemake.input, snakemake.output, snakemake.params
    gained = gains(read_parquet(inputs.averages, list(AVERAGES)), params.baselines)
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in inputs.resamples)
    found = improvements(gained, resampled, params.baselines, params.studies, params.level)
    write_parquet(found, output.improvements)
    languages = read_parquet(inputs.languages, [*AVERAGES, "language"])
    write_parquet(gains(languages, params.baselines, by=["language"]), output.languages)
