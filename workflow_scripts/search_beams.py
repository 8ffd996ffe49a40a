"""Search the beams of a task's evaluation prompts with one model."""

from trace_job import job
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.beams import beam_task
from trace_workflow.models.prompts import ask_evaluated
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.model import load_tokenizer
from tracecal.io.traces import BEAMS

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = DecodingStep.of(snakemake)
    asking = PromptSettings.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    prompts = ask_evaluated(tokenizer, paths.task, asking, params.chat)
    policy = f"beam search, {params.width} beams, at most {asking.max_new_tokens} tokens"
    arguments = tokenizer, asking, resources.batch_size, params.width
    record(step, prompts, BEAMS, policy, beam_task, *arguments)
