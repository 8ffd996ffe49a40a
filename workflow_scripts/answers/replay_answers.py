"""Write the traces that a model gives to answers that a file holds."""

from tracecal.decode.foreign import of_task, write_foreign
from tracecal.decode.model import load_tokenizer
from tracecal.decode.parallel import on_model
from tracecal.decode.replay import replay_answers, tokenisation
from tracecal.decode.traces import provenance
from tracecal.job import job
from tracecal.logs.options import Reading
from tracecal.storage.files import read_checked

with job(snakemake):
    inputs, params, resources = snakemake.input, snakemake.params, snakemake.resources
    reading = Reading.model_validate_json(params.reading)
    answers = of_task(inputs.answers, inputs.task, reading)
    given = load_tokenizer(inputs.model), answers, resources.batch_size, params.end_token
    replayed = on_model(replay_answers, inputs.model, params.loading, resources.gpu, *given)
    made = provenance(
        snakemake.wildcards.model,
        read_checked(inputs.revision).strip(),
        params.loading["dtype"],
        f"replay of {inputs.answers}",
        params.seed,
    )
    told = {"tokenisation": tokenisation(answers, params.end_token)}
    write_foreign(replayed, made | told, reading, snakemake.output[0])
