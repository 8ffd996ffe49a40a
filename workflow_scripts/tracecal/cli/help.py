"""`tracecal reading` and `tracecal settings`: how answers are read, and settings of a fit."""

import json
import textwrap
from collections.abc import Iterator

from pydantic import BaseModel

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.options import FIRST_READING, USUALLY, ModelOptions
from tracecal.errors import InputError
from tracecal.io.log import printable


@command(
    "know how your answers are read, and what they lack",
    "tracecal reading log.jsonl",
    models={"reading": ModelOptions(panels={USUALLY: FIRST_READING})},
)
def reading(*, answers: str, reading: Reading) -> None:
    """Say how a file of answers is read, and what it lacks.

    It may be JSON Lines, JSON, CSV, TSV, Excel, Arrow, Parquet or an Inspect log. All commands that
    read answers take these options; a file mostly says what they do (docs/reference/formats.md).

    Parameters
    ----------
    answers : path
        The file of answers.
    """
    summary = tracecal.explain_reading(answers, reading=reading)
    print(printable(summary.text))
    if not summary.answers.height:
        raise InputError(f"{answers} holds no usable answer; the reason is above.")


@command("list the settings of a fit", "tracecal settings")
def settings() -> None:
    """List the keys of the file that --config names, with their defaults.

    They are those of a run's configuration: 'splits.count' is the key 'count' below 'splits'.
    """
    from tracecal.calibration.settings import FitSettings

    for key, default, description in keys_of(FitSettings):
        print(f"{key}: {default}", *textwrap.wrap(description, 92), sep="\n    ")


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """List a model's keys (nested ones with a dot), defaults as JSON, and descriptions."""
    for name, field in model.model_fields.items():
        if isinstance(default := field.get_default(), BaseModel):
            yield from keys_of(type(default), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(default), field.description or ""
