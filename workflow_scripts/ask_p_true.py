"""Let one model judge each of its answers to a task as true or false."""

from trace_job import job
from trace_workflow.models.p_true import P_TRUE, judge_answers, judging_prompts
from trace_workflow.models.self_evaluation import decoded_answers
from trace_workflow.models.step import DecodingStep, record
from tracecal.capture.model import load_tokenizer

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    tokenizer = load_tokenizer(paths.model)
    answers = decoded_answers(paths.traces, paths.task, params.stop)
    record(
        DecodingStep.of(snakemake),
        judging_prompts(tokenizer, answers, params.prompt, params.start, params.chat),
        P_TRUE,
        "the next token's raw distribution",
        judge_answers,
        tokenizer,
        snakemake.resources.batch_size,
        notes=lambda replies: {"prompt": params.prompt, "start": params.start},
    )
