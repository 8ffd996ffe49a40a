"""Rank answers by TRACE with their risk where it stood, and moved to other positions."""

from tracecal.analyse.pairs import read_pairs
from tracecal.analyse.position_shift import position_shift
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    operators = ["example_id", "setting", "draw", "score"]
    analysis = position_shift(
        read_pairs(inputs.operators, params.pairs, operators),
        read_pairs(inputs.labels, params.pairs, ["example_id", "correct"]),
        read_pairs(inputs.splits, params.pairs, ["example_id", "split", "part"]),
    )
    write_parquet(analysis, snakemake.output[0])
