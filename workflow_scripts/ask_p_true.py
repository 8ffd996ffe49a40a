"""Let one model judge each of its answers to a task as true or false."""

from trace_workflow.jobs.job import job
from trace_workflow.models.p_true import P_TRUE, judge_answers, judging_prompts
from trace_workflow.models.self_evaluation import decoded_answers
from trace_workflow.models.step import Step, record
from tracecal.capture.model import load_tokenizer

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    tokenizer = load_tokenizer(paths.model)
    answers = decoded_answers(paths.traces, paths.task, params.stop)
    prompts = judging_prompts(tokenizer, answers, params.prompt, params.start, params.chat)
    policy = "the next token's raw distribution"
    arguments = tokenizer, resources.batch_size
    notes = {"prompt": params.prompt, "start": params.start}
    record(step, prompts, P_TRUE, policy, judge_answers, *arguments, notes=lambda _: notes)
