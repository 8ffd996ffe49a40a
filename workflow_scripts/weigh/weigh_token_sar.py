"""Weigh the tokens of a task's evaluation answers by their relevance, for TokenSAR."""

from tracecal.decode.model import load_tokenizer, special_ids
from tracecal.decode.traces import arrow_metadata, read_traces
from tracecal.jobs.job import job
from tracecal.stage.folder import fingerprint
from tracecal.tasks.roles import evaluated
from tracecal.weigh.encoder import load_encoder
from tracecal.weigh.output import write_output
from tracecal.weigh.relevance import TOKEN_WEIGHTS, token_weights

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    traces = read_traces(paths.traces, ["example_id", "token_ids", "tokens"])
    answers = evaluated(traces, paths.task, ["question"])

    def start():
        encoder = load_encoder(paths.encoder)
        special = special_ids(load_tokenizer(paths.model))
        return lambda rows: token_weights(encoder, rows, special, resources.batch_size)

    write_output(
        snakemake.output[0],
        answers.to_dicts(),
        TOKEN_WEIGHTS,
        dict(params.items()),
        arrow_metadata(paths.traces) | {"encoder": fingerprint(paths.encoder)},
        [paths.traces, paths.task],
        start,
    )
