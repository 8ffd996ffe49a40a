"""Replaying answers: exact traces of answers that were made elsewhere."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import polars as pl

from tracecal.answers.answers import Source, answers_in
from tracecal.answers.reading import Reading
from tracecal.answers.record import RECORDS
from tracecal.errors import InputError
from tracecal.io.log import LOGGER


def replay(
    answers: Source,
    weights: str | Path,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    batch_size: int = 32,
    end_token: bool = False,
    output: str | Path | None = None,
    reading: Reading | None = None,
) -> pl.DataFrame:
    """Read answers again with the model that gave them, for exact traces.

    Each answer is read once; nothing is generated. Needs the extra ``replay``.

    Parameters
    ----------
    answers : path, frame or rows
        Answers with their prompts: a file, or what `read_answers` gives.
    weights : path
        The model's folder, as for Transformers.
    dtype : {"float32", "bfloat16", "float16"}
        Type of the weights.
    batch_size : int
        Answers processed together.
    end_token : bool
        Append the model's end token to answers of text.
    output : path, optional
        An .arrow file of the traces, for score and calibrate.
    reading : Reading, optional
        How the answers are read. Its ``model`` names the model where an answer does not; else the
        folder does.

    Returns
    -------
    polars.DataFrame
        Columns of `read_answers`, with ``surprisal`` and ``entropy`` (nats) of each token; without
        answers that were not given.

    Raises
    ------
    InputError
        Where an answer has no prompt or no token, or tokens that the model does not know; or where
        the extra is not installed.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.replay("no_file.jsonl", "path/to/model")
    Traceback (most recent call last):
    tracecal.errors.InputError: no_file.jsonl cannot be read...
    """
    for module in ("torch", "transformers", "safetensors"):
        if find_spec(module) is None:
            raise InputError(
                f"a replay needs {module}, which is not installed: pip install 'tracecal[replay]'"
            )
    source = answers_in(answers, reading)
    from tracecal.capture.model import load_model, load_tokenizer
    from tracecal.capture.teacher_forcing import replay_answers, tokenisation
    from tracecal.io.traces import write_table

    records = source.frame.filter(pl.col("no_answer").is_null()).select(*RECORDS)
    revision = source.metadata.get("revision")
    tokens_from = tokenisation(records, end_token)
    LOGGER.info("%s", tokens_from)
    model, tokenizer = load_model(weights, dtype), load_tokenizer(weights)
    traces = replay_answers(model, tokenizer, records, batch_size, end_token)
    name = (reading.model if reading else None) or Path(weights).resolve().name
    traces = traces.with_columns(pl.col("model").fill_null(name))
    if output is not None:
        metadata = {"model": name} | ({"revision": revision} if revision else {})
        metadata |= {"dtype": dtype, "tokenisation": tokens_from}
        write_table(traces.to_arrow(compat_level=pl.CompatLevel.oldest()), metadata, output)
    return traces.with_columns(revision=pl.lit(revision)) if revision else traces
