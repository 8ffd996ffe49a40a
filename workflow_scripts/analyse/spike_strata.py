"""Count errors by mean risk and spike gap."""

from tracecal.analyse.bootstrap import Bootstrap
from tracecal.analyse.pairs import KEYS, read_pairs, scope
from tracecal.analyse.spike_strata import SCORE_FEATURES, spike_quintiles, spike_strata
from tracecal.analyse.spikes import FEATURES, with_risks
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    pairs = params.pairs
    labels = read_pairs(paths.labels, pairs, ["example_id", "correct"])
    features = read_pairs(paths.features, pairs, ["example_id", *FEATURES, *SCORE_FEATURES])
    groups = read_pairs(paths.tasks, pairs, ["example_id", "group_id"])
    answers = with_risks(features, labels).join(groups, on=KEYS, validate="1:1")
    for analysis, output in (
        (spike_strata, snakemake.output.strata),
        (spike_quintiles, snakemake.output.quintiles),
    ):
        found = analysis(answers, Bootstrap(params.seed, params.resamples, params.level))
        write_parquet(found.with_columns(**scope(pairs)), output)
