"""Draw the subset of a task's rows that the estimators which cost most are computed for."""

from tracecal.jobs.job import job
from tracecal.storage.files import read_parquet, write_parquet
from tracecal.tasks.subset import draw_subset

with job(snakemake):
    rows = read_parquet(snakemake.input.task, ["example_id", "role"])
    params = snakemake.params
    write_parquet(draw_subset(rows, params.seed, params.answers), snakemake.output[0])
