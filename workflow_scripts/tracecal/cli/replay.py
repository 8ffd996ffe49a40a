"""`tracecal replay`: exact traces of answers made elsewhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracecal.cli.options import (
    AnswersFile,
    AsRead,
    command,
    ending,
    read_given,
    require_installed,
)
from tracecal.io.log import LOGGER

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
    import polars as pl

    from tracecal.capture.model import load_model, load_tokenizer
    from tracecal.capture.replay import replay_answers, tokenisation, write_replayed

    given = read_given(answers, reading)
    model, tokenizer = load_model(weights, dtype), load_tokenizer(weights)
    metadata = {
        "model": reading.model or Path(weights).resolve().name,
        "revision": revision or given.metadata.get("revision"),
        "dtype": dtype,
        "tokenisation": tokenisation(given.frame, end_token),
    }
    LOGGER.info("%s", metadata["tokenisation"])
    traces = replay_answers(model, tokenizer, given.frame, batch_size, end_token)
    traces = traces.with_columns(pl.col("model").fill_null(metadata["model"]))
    write_replayed(traces, {name: value for name, value in metadata.items() if value}, output)
