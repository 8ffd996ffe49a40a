"""Train a model's internal-state probe on its tasks' training rows; score all its answers."""

from tracecal.decode.traces import read_arrow
from tracecal.jobs.job import job
from tracecal.learn.collect import all_rows, labelled
from tracecal.learn.fit import Training
from tracecal.learn.probe import probe_probabilities, train_probe
from tracecal.storage.files import write_parquet

with job(snakemake):
    files, params = snakemake.input, snakemake.params
    rows = all_rows(files.tasks, files.hidden, read_arrow)
    training = labelled(rows, files.tasks, files.labels)
    train_probe(training, params.expansion, Training(**params.fitting), snakemake.output.learned)
    write_parquet(probe_probabilities(snakemake.output.learned, rows), snakemake.output.scores)
