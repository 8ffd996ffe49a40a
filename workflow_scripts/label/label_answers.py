"""Judge a model's answers to a task."""

from tracecal.decode.traces import read_arrow
from tracecal.jobs.job import job
from tracecal.jobs.progress import LOGGER
from tracecal.label.answers import EXAMPLE_COLUMNS, label_answers
from tracecal.registry.custom import custom_rules, require_unedited
from tracecal.storage.files import read_parquet, write_parquet
from tracecal.tasks.judging import Judging

with job(snakemake):
    custom, code = snakemake.params.custom or (None, None)
    if custom:
        require_unedited(custom, code)
    labels = label_answers(
        read_arrow(snakemake.input.traces),
        read_parquet(snakemake.input.task, EXAMPLE_COLUMNS),
        Judging.model_validate_json(snakemake.params.spec),
        custom_rules(custom),
    )
    LOGGER.info("%d of %d answers are correct", labels["correct"].sum(), labels.height)
    write_parquet(labels, snakemake.output[0])
