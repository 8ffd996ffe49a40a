"""Record the hidden state of the last prompt token of a task's examples, both roles."""

from tracecal.decode.hidden import HIDDEN, hidden_task
from tracecal.decode.parallel import on_model
from tracecal.decode.record import Step
from tracecal.decode.traces import read_arrow
from tracecal.job import job

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    wildcards = snakemake.wildcards

    def capture(prompts, keep):
        given = prompts, params.depth, resources.batch_size
        on_model(hidden_task, paths.model, params.loading, resources.gpu, *given, keep=keep)

    step = Step(wildcards.model, paths.revision, dict(params.items()), wildcards.get("shard"))
    step.record(
        snakemake.output[0],
        read_arrow(paths.traces, ["example_id", "prompt_token_ids"]).to_dicts(),
        HIDDEN,
        f"prefill, hidden state of the last prompt token at depth {params.depth:g}",
        capture,
    )
