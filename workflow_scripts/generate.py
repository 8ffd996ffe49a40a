"""Decode a task's answers with one model and record their traces."""

from trace_job import job
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import answer_task
from trace_workflow.models.prompts import PLAIN, ask, lacks_template
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.model import load_tokenizer
from tracecal.io.files import read_parquet
from tracecal.io.traces import TRACES

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = DecodingStep.of(snakemake)
    asking = PromptSettings.model_validate_json(params.asking)
    task = read_parquet(paths.task, ["example_id", "question", "context"])
    tokenizer = load_tokenizer(paths.model)
    chat = True if resources.template else params.chat
    prompts = ask(tokenizer, task, asking, chat)
    prompting = {"prompting": PLAIN} if lacks_template(tokenizer, chat) else {}
    policy = f"greedy, at most {asking.max_new_tokens} tokens, stop strings {list(asking.stop)}"
    arguments = tokenizer, asking, resources.batch_size
    record(step, prompts, TRACES, policy, answer_task, *arguments, notes=lambda traces: prompting)
