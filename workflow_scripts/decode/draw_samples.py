"""Sample several answers to each of a task's evaluation prompts."""

from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask_evaluated
from tracecal.decode.record import record
from tracecal.decode.sampling import SAMPLES, sample_task
from tracecal.jobs.job import job
from tracecal.jobs.step import Step
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    prompts = ask_evaluated(tokenizer, paths.task, asking, params.chat)
    policy = f"{params.answers} samples at temperature {params.temperature:g}"
    drawing = params.answers, params.temperature, params.seed
    arguments = tokenizer, asking, resources.batch_size, *drawing
    record(step, prompts, SAMPLES, policy, sample_task, *arguments)
