"""Write the traces that a model gives to answers that a file holds."""

from tracecal.decode.foreign import of_task, write_foreign
from tracecal.decode.model import load_model, load_tokenizer
from tracecal.decode.replay import replay_answers, tokenisation
from tracecal.decode.traces import provenance
from tracecal.job import job
from tracecal.logs.options import Reading
from tracecal.storage.files import read_checked

with job(snakemake):
    inputs, params, resources = snakemake.input, snakemake.params, snakemake.resources
    reading = Reading.model_validate_json(params.reading)
    answers = of_task(inputs.answers, inputs.task, reading)
    model = load_model(inputs.model, **params.loading, device_map=resources.device_map)
    tokenizer = load_tokenizer(inputs.model)
    replayed = replay_answers(model, tokenizer, answers, resources.batch_size, params.end_token)
    made = provenance(
        snakemake.wildcards.model,
        read_checked(inputs.revision).strip(),
        params.loading["dtype"],
        f"replay of {inputs.answers}",
        params.seed,
    )
    told = {"tokenisation": tokenisation(answers, params.end_token)}
    write_foreign(replayed, made | told, reading, snakemake.output[0])
