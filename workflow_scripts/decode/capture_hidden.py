"""Record the hidden state of the last prompt token of a task's examples, both roles."""

from tracecal.decode.hidden import HIDDEN, hidden_task
from tracecal.decode.record import Step
from tracecal.decode.traces import read_arrow
from tracecal.job import job

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step(snakemake)

    def capture(prompts, keep):
        given = prompts, params.depth, resources.batch_size
        step.on_model(hidden_task, *given, keep=keep)

    step.record(
        read_arrow(paths.traces, ["example_id", "prompt_token_ids"]).to_dicts(),
        HIDDEN,
        f"prefill, hidden state of the last prompt token at depth {params.depth:g}",
        capture,
    )
