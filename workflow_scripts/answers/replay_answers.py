"""Write the traces that a model gives to answers that a file holds."""

import polars as pl

from tracecal.decode.foreign import FOREIGN, UNREAD, as_traces, kind_of, of_task
from tracecal.decode.model import load_tokenizer
from tracecal.decode.record import Step
from tracecal.decode.replay import replay_task, tokenisation, tokenised
from tracecal.job import job
from tracecal.logs.options import Reading
from tracecal.logs.record import RECORDS
from tracecal.storage.files import write_parquet

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    reading = Reading.model_validate_json(params.reading)
    answers, questions = of_task(paths.answers, params.held, paths.task, reading, UNREAD)
    tokenizer = load_tokenizer(paths.model)
    prompts = tokenised(tokenizer, answers, params.end_token)
    metadata = kind_of(pl.DataFrame(prompts, schema=RECORDS))
    metadata |= {"entropy": "exact", "tokenisation": tokenisation(answers, params.end_token)}

    def replay(missing, keep):
        def keep_traces(rows):
            keep(as_traces(pl.DataFrame(rows, schema=RECORDS)))

        given = tokenizer, missing, resources.batch_size
        step.on_model(replay_task, *given, keep=keep_traces)

    step = Step(snakemake)
    policy = f"replay of {paths.answers}"
    step.record(prompts, FOREIGN, policy, replay, lambda table: metadata)
    write_parquet(questions.drop("lacks"), snakemake.output.questions)
