"""Weigh the phrases of a task's evaluation answers, for MARS."""

from trace_workflow.jobs.job import job
from trace_workflow.models.folders import fingerprint
from trace_workflow.models.mars_weights import PHRASE_WEIGHTS, phrase_weights
from trace_workflow.models.text_encoders import load_encoder
from trace_workflow.models.weighing import write_output
from tracecal.capture.model import load_tokenizer
from tracecal.capture.special_tokens import special_ids
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import arrow_metadata, read_traces

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    folder = paths.get("encoder")
    traces = read_traces(paths.traces, ["example_id", "token_ids", "tokens"])
    answers = evaluated(traces, paths.task, ["question", "language"])

    def start():
        encoder = load_encoder(folder, "token") if folder else None
        special = special_ids(load_tokenizer(paths.model))
        return lambda rows: phrase_weights(
            encoder, rows, special, **params.phrases, batch_size=resources.batch_size
        )

    revision = {"encoder": fingerprint(folder) if folder else "none"}
    write_output(
        snakemake.output[0],
        answers.to_dicts(),
        PHRASE_WEIGHTS,
        dict(params.items()),
        arrow_metadata(paths.traces) | revision,
        [paths.traces, paths.task],
        start,
    )
