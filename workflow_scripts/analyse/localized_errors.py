"""Measure how well confidence tells errors of a kind from matched correct answers."""

from tracecal.analyse import localized_errors
from tracecal.analyse.bootstrap import Bootstrap
from tracecal.analyse.confidence import with_confidences
from tracecal.analyse.pairs import KEYS, read_pairs, scope
from tracecal.job import job
from tracecal.storage.files import write_parquet

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    labels = read_pairs(paths.labels, params.pairs, ["example_id", "correct", "error_kind"])
    lengths = read_pairs(paths.features, params.pairs, ["example_id", "length"])
    groups = read_pairs(paths.tasks, params.pairs, ["example_id", "group_id"])
    scores = read_pairs(paths.scores, params.pairs, ["example_id", *params.scored])
    columns = ["estimator", "split", "example_id", "probability"]
    predictions = read_pairs(paths.predictions, params.pairs, columns)
    answers = lengths.join(labels, on=KEYS, validate="1:1").join(groups, on=KEYS, validate="1:1")
    found = getattr(localized_errors, snakemake.wildcards.errors)(
        with_confidences(answers, scores, predictions, params.learned),
        [*params.scored, *params.learned],
        params.baselines,
        Bootstrap(params.seed, params.resamples, params.level),
    )
    write_parquet(found.with_columns(**scope(params.pairs)), snakemake.output[0])
