"""Sample several answers to each of a task's evaluation prompts."""

from trace_job import job
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.prompts import ask_evaluated
from trace_workflow.models.sampling import SAMPLES, sample_task
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.model import load_tokenizer

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = DecodingStep.of(snakemake)
    asking = PromptSettings.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    prompts = ask_evaluated(tokenizer, paths.task, asking, params.chat)
    policy = f"{params.answers} samples at temperature {params.temperature:g}"
    draws = params.answers, params.temperature, params.seed
    arguments = tokenizer, asking, resources.batch_size, *draws
    record(step, prompts, SAMPLES, policy, sample_task, *arguments)
