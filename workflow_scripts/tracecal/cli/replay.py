"""`tracecal replay`: exact traces of answers made elsewhere."""

from typing import Annotated, Literal

import typer

from tracecal.cli.options import (
    AnswersFile,
    AsRead,
    command,
    ending,
    require_installed,
)

MODEL = "The model"


@command(
    "have exact log-probabilities of answers that came without",
    "tracecal replay --answers samples_svamp.jsonl --weights path/to/model --output replayed.arrow",
)
def replay(
    answers: AnswersFile,
    weights: Annotated[str, typer.Option(help="the model's folder, as for Transformers")],
    output: Annotated[
        str,
        typer.Option(callback=ending(".arrow"), help="an .arrow file, for score and calibrate"),
    ],
    reading: AsRead,
    end_token: Annotated[
        bool, typer.Option("--end-token", help="append it to answers of text")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="revision of the model", rich_help_panel=MODEL)
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"],
        typer.Option(help="type of the weights", rich_help_panel=MODEL),
    ] = "float32",
    batch_size: Annotated[
        int, typer.Option(help="answers processed together", rich_help_panel=MODEL)
    ] = 32,
) -> None:
    """Write exact traces of answers made elsewhere.

    Each answer is read once with the model that gave it; nothing is generated.
    """
    require_installed("'tracecal replay'", "replay", "torch", "transformers", "safetensors")
    from tracecal.answers.sources import read_answers
    from tracecal.capture.replay import replay

    of_model = {"revision": revision, "model": reading.model, "dtype": dtype}
    how = {"batch_size": batch_size, "end_token": end_token, "output": output}
    replay(read_answers(answers, reading=reading), weights, **of_model, **how)
