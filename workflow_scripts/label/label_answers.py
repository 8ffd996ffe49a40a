"""Judge a model's answers to a task."""

from tracecal.decode.traces import read_arrow
from tracecal.job import job
from tracecal.label.answers import label_answers
from tracecal.own import own_rules, require_unedited
from tracecal.progress import LOGGER
from tracecal.storage.files import read_parquet, write_parquet
from tracecal.tasks.judging import Judging

TASK_COLUMNS = ["example_id", "question", "references", "distractors", "language"]

with job(snakemake):
    own, code = snakemake.params.own or (None, None)
    if own:
        require_unedited(own, code)
    labels = label_answers(
        read_arrow(snakemake.input.traces),
        read_parquet(snakemake.input.task, TASK_COLUMNS),
        Judging.model_validate_json(snakemake.params.spec),
        own_rules(own),
    )
    LOGGER.info("%d of %d answers are right", labels["correct"].sum(), labels.height)
    write_parquet(labels, snakemake.output[0])
