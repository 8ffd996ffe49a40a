"""Sample several answers to each of a task's evaluation prompts."""

from tracecal.decode.engine import engine_of
from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask
from tracecal.decode.record import Step
from tracecal.decode.sampling import SAMPLES, sample_task
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

    def sample(prompts, keep):
        drawing = params.answers, params.temperature, params.seed
        given = tokenizer, prompts, asking, resources.batch_size, *drawing
        on_model = engine_of(params.get("engine"), resources.mem_mb)
        on_model(sample_task, paths.model, params.loading, resources.gpu, *given, keep=keep)

    step = Step(wildcards.model, paths.revision, dict(params.items()), wildcards.get("shard"))
    step.record(
        snakemake.output[0],
        ask(tokenizer, task, asking, params.chat),
        SAMPLES,
        f"{params.answers} samples at temperature {params.temperature:g}",
        sample,
    )
