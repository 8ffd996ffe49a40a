"""Weigh the phrases of a task's evaluation answers, for MARS."""

from tracecal.decode.model import load_tokenizer, special_ids
from tracecal.decode.traces import arrow_metadata, read_traces
from tracecal.jobs.job import job
from tracecal.stage.folder import fingerprint
from tracecal.tasks.roles import evaluated
from tracecal.weigh.encoder import load_encoder
from tracecal.weigh.importance import PHRASE_WEIGHTS, phrase_weights
from tracecal.weigh.output import write_output

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
