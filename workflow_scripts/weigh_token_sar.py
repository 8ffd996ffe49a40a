"""Weigh the tokens of a task's evaluation answers by their relevance, for TokenSAR."""

from trace_job import job
from trace_workflow.models.encoder_step import weigh_answers
from trace_workflow.models.step import shard_of
from trace_workflow.models.token_sar_weights import TOKEN_WEIGHTS, token_weights

with job(snakemake):
    batch_size = snakemake.resources.batch_size
    weigh_answers(
        snakemake.input,
        ["question"],
        TOKEN_WEIGHTS,
        dict(snakemake.params.items()),
        snakemake.output[0],
        lambda encoder, answers, special: token_weights(encoder, answers, special, batch_size),
        shard=shard_of(snakemake.wildcards),
    )
