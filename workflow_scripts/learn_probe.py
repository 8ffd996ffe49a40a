"""Train a model's internal-state probe on its tasks' training rows; score all its answers."""

from trace_job import job
from trace_workflow.models.probe import probe_probabilities, train_probe
from trace_workflow.models.training import TrainingSettings, all_rows, labelled
from tracecal.io.files import write_parquet
from tracecal.io.traces import read_arrow

with job(snakemake):
    files, params = snakemake.input, snakemake.params
    rows = all_rows(files.tasks, files.hidden, read_arrow)
    training = labelled(rows, files.tasks, files.labels)
    train_probe(
        training, params.expansion, TrainingSettings(**params.fitting), snakemake.output.learned
    )
    write_parquet(probe_probabilities(snakemake.output.learned, rows), snakemake.output.scores)
