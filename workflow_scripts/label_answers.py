"""Judge a model's answers to a task."""

from trace_job import job
from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.config.custom import custom_rules, require_unedited
from trace_workflow.correctness.label import EXAMPLE_COLUMNS, label_answers
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.log import LOGGER
from tracecal.io.traces import read_arrow

with job(snakemake):
    custom, code = snakemake.params.custom or (None, None)
    if custom:
        require_unedited(custom, code)
    labels = label_answers(
        read_arrow(snakemake.input.traces),
        read_parquet(snakemake.input.task, needed=EXAMPLE_COLUMNS),
        CorrectnessSettings.model_validate_json(snakemake.params.spec),
        custom_rules(custom),
    )
    LOGGER.info("%d of %d answers are correct", labels["correct"].sum(), labels.height)
    write_parquet(labels, snakemake.output[0])
