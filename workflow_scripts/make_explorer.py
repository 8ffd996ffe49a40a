"""Write the answer explorer."""

import polars as pl

from trace_job import job
from trace_workflow.analyses.explorer_answers import (
    AnswerFiles,
    read_explorer_answers,
    read_parents,
)
from tracecal.explorer.contents import EXPLORED, choose_answers, contents
from tracecal.explorer.page import page
from tracecal.io.files import write_text

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    kinds = inputs.traces, inputs.tasks, inputs.labels, inputs.scores, inputs.predictions
    ids = [entry["id"] for entry in params.estimators]
    answers = pl.concat(
        read_explorer_answers(AnswerFiles(*paths), ids, params.parents.get(task)).select(
            pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all()
        )
        for (model, task), *paths in zip(params.pairs, *kinds, strict=True)
    )
    chosen = choose_answers(answers, EXPLORED, params.seed)
    parents = {
        (model, params.parents[task]): path
        for (model, task), path in zip(params.pairs, inputs.parents, strict=True)
        if task in params.parents
    }
    data = contents(
        chosen,
        params.estimators,
        params.models,
        params.tasks,
        params.run,
        answers.height,
        params.main,
        parents=read_parents(chosen, parents),
    )
    write_text(page(data), snakemake.output[0])
