"""Score a task's evaluated answers with the estimators of one family."""

from importlib import import_module

from trace_job import job
from trace_workflow.config.custom import require_unedited
from tracecal.estimators.scores import family_scores
from tracecal.io.files import write_parquet

with job(snakemake):
    params = snakemake.params
    if params.custom_code:
        require_unedited(params.settings["file"], params.custom_code, params.settings["score"])
    module = import_module(params.module)
    family = getattr(module, "FAMILIES", {}).get(snakemake.wildcards.family, module)
    answers = family.answers(**dict(snakemake.input.items()), **params.settings)
    write_parquet(family_scores(answers, family.SCORES, params.chosen), snakemake.output[0])
