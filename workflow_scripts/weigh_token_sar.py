"""Weigh the tokens of a task's evaluation answers by their relevance, for TokenSAR."""

from trace_workflow.jobs.job import job
from trace_workflow.models.folders import fingerprint
from trace_workflow.models.text_encoders import load_encoder
from trace_workflow.models.token_sar_weights import TOKEN_WEIGHTS, token_weights
from trace_workflow.models.weighing import write_output
from tracecal.capture.model import load_tokenizer
from tracecal.capture.special_tokens import special_ids
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import arrow_metadata, read_traces

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
