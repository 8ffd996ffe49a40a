"""Train a model's LARS scorer on its tasks' training rows; score all its answers."""

from trace_job import job
from trace_workflow.models.folders import link_model
from trace_workflow.models.lars import TRACE_COLUMNS, lars_probabilities, train_lars
from trace_workflow.models.training import TrainingSettings, all_rows, labelled
from tracecal.capture.model import load_tokenizer
from tracecal.io.files import write_parquet
from tracecal.io.traces import read_traces

with job(snakemake):
    files, params, folder = snakemake.input, snakemake.params, snakemake.output.learned
    adopted = files.get("encoder")
    tokenizer = load_tokenizer(adopted or files.model)
    rows = all_rows(files.tasks, files.traces, lambda path: read_traces(path, TRACE_COLUMNS))
    if params.trained:
        link_model(adopted, folder)
    else:
        training = labelled(rows, files.tasks, files.labels)
        fitting = TrainingSettings(**params.fitting)
        encoder = adopted or params.small
        train_lars(training, tokenizer, files.model, encoder, params.bins, fitting, folder)
    scores = lars_probabilities(folder, rows, tokenizer, snakemake.resources.batch_size)
    write_parquet(scores, snakemake.output.scores)
