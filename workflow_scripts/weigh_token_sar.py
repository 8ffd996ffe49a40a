"""Weigh the tokens of a task's evaluation answers by their relevance, for TokenSAR."""

from trace_job import job
from trace_workflow.models.encoder_step import weigh_answers
from trace_workflow.models.token_sar_weights import TOKEN_WEIGHTS, token_weights

with job(snakemake):
    batch_size = snakemake.resources.batch_size
    weigh_answers(
        snakemake,
        ["question"],
        TOKEN_WEIGHTS,
        lambda encoder, answers, special: token_weights(encoder, answers, special, batch_size),
    )
