"""Decode a task's answers with one model and record their traces."""

from tracecal.decode.answers import answer_task
from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask
from tracecal.decode.record import record
from tracecal.decode.traces import TRACES
from tracecal.jobs.job import job
from tracecal.jobs.step import Step
from tracecal.storage.files import read_parquet
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    asking = Asking.model_validate_json(params.asking)
    task = read_parquet(paths.task, ["example_id", "question", "context"])
    tokenizer = load_tokenizer(paths.model)
    prompts = ask(tokenizer, task, asking, True if resources.template else params.chat)
    policy = f"greedy, at most {asking.max_new_tokens} tokens, stop strings {list(asking.stop)}"
    arguments = tokenizer, asking, resources.batch_size
    record(step, prompts, TRACES, policy, answer_task, *arguments)
