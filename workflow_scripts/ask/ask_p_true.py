"""Let one model judge each of its answers to a task as true or false."""

from tracecal.decode.asked import answered
from tracecal.decode.model import load_tokenizer
from tracecal.decode.p_true import P_TRUE, judge_answers, judging_prompts
from tracecal.decode.record import Step
from tracecal.job import job

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step(snakemake)
    tokenizer = load_tokenizer(paths.model)
    answers = answered(paths.traces, paths.task, params.stop)

    def judge(prompts, keep):
        given = tokenizer, prompts, resources.batch_size
        step.on_model(judge_answers, *given, keep=keep)

    step.record(
        judging_prompts(tokenizer, answers, params.prompt, params.start, params.chat),
        P_TRUE,
        "the next token's raw distribution",
        judge,
        lambda table: {"prompt": params.prompt, "start": params.start},
    )
