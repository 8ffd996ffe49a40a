"""Replay answers from a file with a model and write their traces."""

import polars as pl

from trace_job import job
from trace_workflow.models.step import DecodingStep, record
from tracecal.answers.imported_traces import IMPORTED, kind_metadata
from tracecal.answers.reading import Reading
from tracecal.answers.record import RECORDS
from tracecal.answers.task_answers import NOT_REPLAYABLE, answers_to
from tracecal.capture.model import load_tokenizer
from tracecal.capture.teacher_forcing import replay_traces, tokenisation, tokenised
from tracecal.io.files import write_parquet

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = DecodingStep.of(snakemake)
    reading = Reading.model_validate_json(params.reading)
    answers, questions = answers_to(
        paths.task, paths.answers, params.digest, reading, NOT_REPLAYABLE
    )
    tokenizer = load_tokenizer(paths.model)
    prompts = tokenised(tokenizer, answers, params.end_token)
    metadata = kind_metadata(pl.DataFrame(prompts, schema=RECORDS))
    metadata |= {"entropy": "exact", "tokenisation": tokenisation(answers, params.end_token)}
    policy = f"replay of {paths.answers}"
    arguments = tokenizer, resources.batch_size
    record(
        step, prompts, IMPORTED, policy, replay_traces, *arguments, notes=lambda traces: metadata
    )
    write_parquet(questions.drop("lacks"), snakemake.output.questions)
