"""Let one model judge each of its answers to a task as true or false."""

from tracecal.decode.model import load_tokenizer
from tracecal.decode.p_true import P_TRUE, judge_answers, judging_prompts
from tracecal.decode.record import record
from tracecal.decode.self_evaluation import decoded_answers
from tracecal.jobs.job import job
from tracecal.jobs.step import Step

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
