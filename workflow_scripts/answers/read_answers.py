"""Write the traces of answers that a file holds."""

import pyarrow as pa

from tracecal.decode.foreign import FOREIGN, as_traces, entropies_of, kind_of, of_task
from tracecal.decode.traces import write_table
from tracecal.job import job
from tracecal.logs.options import Reading
from tracecal.storage.files import write_parquet

with job(snakemake):
    inputs, output = snakemake.input, snakemake.output
    reading = Reading.model_validate_json(snakemake.params.reading)
    answers, questions = of_task(inputs.answers, snakemake.params.held, inputs.task, reading)
    made = {"model": snakemake.wildcards.model, "decoding": f"read from {inputs.answers}"}
    metadata = made | kind_of(answers) | entropies_of(answers, reading)
    write_table(pa.Table.from_pylist(as_traces(answers), schema=FOREIGN), metadata, output.traces)
    write_parquet(questions, output.questions)
