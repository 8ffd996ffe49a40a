"""Fit correctness on mean risk and spikes, with all tasks pooled."""

from tracecal.analyse.averages import over_splits
from tracecal.analyse.pairs import read_pairs, scope
from tracecal.analyse.spike_modeling import LOCAL_FEATURES, spike_modeling
from tracecal.analyse.spikes import FEATURES, with_risks
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    paths, pairs = snakemake.input, snakemake.params.pairs
    labels = read_pairs(paths.labels, pairs, ["example_id", "correct"])
    features = read_pairs(paths.features, pairs, ["example_id", *FEATURES, *LOCAL_FEATURES])
    splits = read_pairs(paths.splits, pairs, ["example_id", "split", "part"])
    found = spike_modeling(with_risks(features, labels), splits, snakemake.params.method)
    measured = found.with_columns(**scope(pairs))
    write_parquet(measured, snakemake.output.metrics)
    means = over_splits(measured, ["model", "tasks", "features", "metric"])
    write_parquet(means, snakemake.output.averages)
