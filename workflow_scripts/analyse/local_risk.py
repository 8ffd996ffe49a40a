"""Select wrong answers whose risk is local, with the entropies of their tokens."""

from tracecal.analyse.local_risk import FEATURES, local_risk
from tracecal.analyse.pairs import read_pairs, scope
from tracecal.decode.traces import read_traces
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    paths, pairs = snakemake.input, snakemake.params.pairs
    features = read_pairs(paths.features, pairs, ["example_id", *FEATURES])
    labels = read_pairs(paths.labels, pairs, ["example_id", "correct"])
    traces = {
        (model, task): read_traces(path, ["example_id", "entropy"])
        for path, (model, task) in zip(paths.traces, pairs, strict=True)
    }
    found = local_risk(features, labels, traces)
    write_parquet(found.with_columns(**scope(pairs)), snakemake.output[0])
