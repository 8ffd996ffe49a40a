"""Write the traces of answers that a file holds."""

from tracecal.decode.foreign import of_task, write_foreign
from tracecal.job import job
from tracecal.logs.options import Reading

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    reading = Reading.model_validate_json(params.reading)
    answers = of_task(inputs.answers, inputs.task, reading)
    made = {"model": snakemake.wildcards.model, "decoding": f"read from {inputs.answers}"}
    write_foreign(answers, made, reading, snakemake.output[0])
