"""Search the beams of a task's evaluation prompts with one model."""

from tracecal.decode.beams import beam_task
from tracecal.decode.model import load_tokenizer
from tracecal.decode.parallel import on_model
from tracecal.decode.prompt import ask
from tracecal.decode.record import Step
from tracecal.decode.traces import BEAMS
from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.tasks.asking import Asking
from tracecal.tasks.roles import evaluated

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    wildcards = snakemake.wildcards
    asking = Asking.model_validate_json(params.asking)
    task = evaluated(read_parquet(paths.task, ["question"]), paths.task)
    tokenizer = load_tokenizer(paths.model)

    def search(prompts, keep):
        given = tokenizer, prompts, asking, resources.batch_size, params.width
        on_model(beam_task, paths.model, params.loading, resources.gpu, *given, keep=keep)

    step = Step(wildcards.model, paths.revision, dict(params.items()), wildcards.get("shard"))
    step.record(
        snakemake.output[0],
        ask(tokenizer, task, asking, params.chat),
        BEAMS,
        f"beam search, {params.width} beams, at most {asking.max_new_tokens} tokens",
        search,
    )
