"""Search the beams of a task's evaluation prompts with one model."""

from tracecal.decode.beam import beam_task
from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask_evaluated
from tracecal.decode.record import record
from tracecal.decode.traces import BEAMS
from tracecal.jobs.job import job
from tracecal.jobs.step import Step
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    prompts = ask_evaluated(tokenizer, paths.task, asking, params.chat)
    policy = f"beam search, {params.width} beams, at most {asking.max_new_tokens} tokens"
    arguments = tokenizer, asking, resources.batch_size, params.width
    record(step, prompts, BEAMS, policy, beam_task, *arguments)
