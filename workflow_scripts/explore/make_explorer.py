"""Write the answer explorer."""

import polars as pl

from tracecal.explore.answers import Files, read_answers
from tracecal.explore.choose import choose_answers
from tracecal.explore.contents import contents
from tracecal.explore.page import page
from tracecal.jobs.job import job
from tracecal.storage.files import write_text

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    kinds = inputs.traces, inputs.tasks, inputs.labels, inputs.scores, inputs.predictions
    answers = pl.concat(
        read_answers(Files(*paths), [entry["id"] for entry in params.estimators]).select(
            pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all()
        )
        for (model, task), *paths in zip(params.pairs, *kinds, strict=True)
    )
    shown = choose_answers(answers, params.answers, params.seed)
    data = contents(
        shown,
        params.estimators,
        params.models,
        params.tasks,
        params.run,
        answers.height,
        params.main,
    )
    write_text(page(data), snakemake.output[0])
