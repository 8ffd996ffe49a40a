"""Decode a task's answers with one model and record their traces."""

from tracecal.decode.answers import answer_task
from tracecal.decode.model import load_tokenizer
from tracecal.decode.prompt import ask
from tracecal.decode.record import Step
from tracecal.decode.traces import TRACES
from tracecal.job import job
from tracecal.storage.files import read_parquet
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step(snakemake)
    asking = Asking.model_validate_json(params.asking)
    task = read_parquet(paths.task, ["example_id", "question", "context"])
    tokenizer = load_tokenizer(paths.model)

    def decode(prompts, keep):
        given = tokenizer, prompts, asking, resources.batch_size
        step.on_model(answer_task, *given, keep=keep)

    step.record(
        ask(tokenizer, task, asking, params.chat if not resources.template else True),
        TRACES,
        f"greedy, at most {asking.max_new_tokens} tokens, stop strings {list(asking.stop)}",
        decode,
    )
