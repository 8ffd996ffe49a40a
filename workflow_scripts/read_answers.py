"""Write answers from a file as traces."""

import pyarrow as pa

from trace_job import job
from tracecal.answers.imported_traces import IMPORTED, entropy_metadata, kind_metadata, trace_rows
from tracecal.answers.reading import Reading
from tracecal.answers.task_answers import answers_to
from tracecal.io.files import write_parquet
from tracecal.io.traces import write_table

with job(snakemake):
    inputs, params, output = snakemake.input, snakemake.params, snakemake.output
    reading = Reading.model_validate_json(params.reading)
    answers, questions = answers_to(inputs.task, inputs.answers, params.digest, reading)
    origin = {"model": snakemake.wildcards.model, "decoding": f"read from {inputs.answers}"}
    metadata = origin | kind_metadata(answers) | entropy_metadata(answers, reading)
    write_table(pa.Table.from_pylist(trace_rows(answers), schema=IMPORTED), metadata, output.traces)
    write_parquet(questions, output.questions)
