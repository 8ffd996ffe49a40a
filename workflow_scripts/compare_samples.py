"""Compare the samples of a task's evaluation prompts with each other and the decoded answer."""

import polars as pl

from trace_job import job
from trace_workflow.models.encoder_step import write_output
from trace_workflow.models.folders import fingerprint
from trace_workflow.models.nli import COMPARISONS, compare_samples
from trace_workflow.models.text_encoders import load_encoder
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import arrow_metadata, read_arrow, read_traces

with job(snakemake):
    paths, batch_size = snakemake.input, snakemake.resources.batch_size
    traces = read_traces(paths.traces, ["example_id", "answer"])
    answers = evaluated(traces, paths.task, ["question"])
    samples = read_arrow(paths.samples, ["example_id", "sample", "text"])

    def start():
        encoder = load_encoder(paths.encoder, "sequence")

        def compare(rows):
            decoded = {row["example_id"]: (row["question"], row["answer"]) for row in rows}
            compared = samples.filter(pl.col("example_id").is_in(list(decoded)))
            return compare_samples(encoder, compared, decoded, batch_size)

        return compare

    write_output(
        snakemake,
        answers.select("example_id", "question", "answer").to_dicts(),
        COMPARISONS,
        arrow_metadata(paths.samples) | {"encoder": fingerprint(paths.encoder)},
        [paths.samples, paths.traces, paths.task],
        start,
    )
