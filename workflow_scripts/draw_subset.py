"""Draw the subset of a task's rows for the costliest estimators."""

from trace_job import job
from trace_workflow.config.task_tables import draw_subset
from tracecal.io.files import read_parquet, write_parquet

with job(snakemake):
    rows = read_parquet(snakemake.input.task, needed=["example_id", "role"])
    params = snakemake.params
    write_parquet(draw_subset(rows, params.seed, params.answers), snakemake.output[0])
