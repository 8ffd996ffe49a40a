"""Weigh the phrases of a task's evaluation answers, for MARS."""

from trace_job import job
from trace_workflow.models.encoder_step import weigh_answers
from trace_workflow.models.mars_weights import PHRASE_WEIGHTS, phrase_weights

with job(snakemake):
    params, batch_size = snakemake.params, snakemake.resources.batch_size
    weigh_answers(
        snakemake,
        ["question", "language"],
        PHRASE_WEIGHTS,
        lambda encoder, answers, special: phrase_weights(
            encoder, answers, special, **params.phrases, batch_size=batch_size
        ),
        encoder_task="token",
    )
