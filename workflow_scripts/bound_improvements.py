"""Put intervals around TRACE+'s improvements on the best baseline."""

import polars as pl

from tracecal.analyse.bootstrap import RESAMPLES
from tracecal.analyse.intervals import improvement_intervals
from tracecal.files import read_parquet, write_parquet
from tracecal.job import job

with job(snakemake.log[0]):
    params = snakemake.params
    resampled = pl.concat([read_parquet(path, list(RESAMPLES)) for path in snakemake.input])
    intervals = improvement_intervals(resampled, params.baselines, params.study, params.level)
    write_parquet(intervals, snakemake.output[0])
