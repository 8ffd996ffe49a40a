"""Put the scores of all families side by side."""

from trace_job import job
from tracecal.estimators.scores import join_scores
from tracecal.io.evaluated import evaluation_ids
from tracecal.io.files import read_parquet, write_parquet

with job(snakemake):
    families = [read_parquet(path, needed=["example_id"]) for path in snakemake.input.families]
    ids = evaluation_ids(snakemake.input.task)
    write_parquet(join_scores(ids, families, snakemake.params.order), snakemake.output[0])
