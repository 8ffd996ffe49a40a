"""Measure every estimator in every split, over all languages and for each."""

from trace_job import job
from tracecal.estimators.estimator import PICKED
from tracecal.io.files import read_parquet, write_parquet
from tracecal.statistics.metrics import all_metrics, metrics_by_language

with job(snakemake):
    predictions = read_parquet(
        snakemake.input.predictions, ["estimator", "split", "example_id", "probability"]
    )
    labels = read_parquet(snakemake.input.labels, ["example_id", "correct"])
    languages = read_parquet(snakemake.input.task, ["example_id", "language"])
    splits = read_parquet(snakemake.input.splits, ["split"])
    answers = labels.join(languages, on="example_id", validate="1:1")
    scores = read_parquet(snakemake.input.scores, needed=["example_id"])
    settings = {
        "model": snakemake.wildcards.model,
        "task": snakemake.wildcards.task,
        "estimators": [*snakemake.params.estimators, PICKED],
        "splits": splits["split"].unique().sort().to_list(),
        "ece_bins": snakemake.params.ece_bins,
    }
    pooled = all_metrics(predictions, answers.drop("language"), scores, **settings)
    write_parquet(pooled, snakemake.output.metrics)
    divided = metrics_by_language(predictions, answers, scores, **settings)
    write_parquet(divided, snakemake.output.languages)
