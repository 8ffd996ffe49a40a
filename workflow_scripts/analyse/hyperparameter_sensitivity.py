"""Calibrate and measure TRACE at every level of its hyperparameters."""

from tracecal.analyse.hyperparameter_sensitivity import hyperparameter_sensitivity
from tracecal.analyse.pairs import read_pairs
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    operators = ["example_id", "setting", "level", "score"]
    analysis = hyperparameter_sensitivity(
        read_pairs(inputs.operators, params.pairs, operators),
        read_pairs(inputs.labels, params.pairs, ["example_id", "correct"]),
        read_pairs(inputs.splits, params.pairs, ["example_id", "split", "part"]),
        params.method,
        params.ece_bins,
    )
    write_parquet(analysis, snakemake.output[0])
