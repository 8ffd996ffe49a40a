"""Write the answer explorer."""

import polars as pl

from trace_job import job
from trace_workflow.analyses import explorer_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.explorer.explorer_contents import EXPLORED, choose_answers, contents
from tracecal.explorer.explorer_page import page
from tracecal.io.regular_files import write_text

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    files = StudyFiles(dict(inputs.items()), params.pairs)
    kinds = ("traces", "tasks", "labels", "scores", "predictions")
    ids = [entry["id"] for entry in params.estimators]
    answers = pl.concat(
        explorer_answers.read_explorer_answers(paths, ids, params.parents.get(task)).select(
            pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all()
        )
        for model, task, paths in files.by_pair(*kinds)
    )
    chosen = choose_answers(answers, EXPLORED, params.seed)
    parents = {
        (model, params.parents[task]): paths["parents"]
        for model, task, paths in files.by_pair("parents")
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
        parents=explorer_answers.read_parents(chosen, parents),
        decision=explorer_answers.show_guarantee(
            inputs.guarantees, params.headline, answers, params.tasks
        ),
    )
    write_text(page(data), snakemake.output[0])
