"""Sample several answers to each of a task's evaluation prompts."""

from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask_evaluated
from tracecal.decode.record import Step
from tracecal.decode.sampling import SAMPLES, sample_task
from tracecal.job import job
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step(snakemake)
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)

    def sample(prompts, keep):
        drawing = params.answers, params.temperature, params.seed
        given = tokenizer, prompts, asking, resources.batch_size, *drawing
        step.on_model(sample_task, *given, keep=keep)

    step.record(
        ask_evaluated(tokenizer, paths.task, asking, params.chat),
        SAMPLES,
        f"{params.answers} samples at temperature {params.temperature:g}",
        sample,
    )
