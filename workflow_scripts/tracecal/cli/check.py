"""`tracecal check`: whether a guarantee fits new labels, as an exit status for CI."""

from typing import Any

import typer

import tracecal
from tracecal.cli.command import ModelOptions, command
from tracecal.io.log import printable


@command(
    "check a guarantee with new labels, as in CI",
    "tracecal check --answers new.jsonl --labels l.csv --calibrator C.json --error-rate 0.2",
    options_of="check",
    endings={"output": (".xml", ".json")},
    models={"reading": ModelOptions(hidden=True, shown=("labels", "right_from"))},
)
def check(*, answers: str, output: str | None = None, **options: Any) -> None:
    """Say whether a guarantee fits the labels of new answers, in three lines.

    It ends with 0 where it does, with 3 where the labels contradict it or the answers are unlike
    the calibration's, with 4 where labels are too few to tell, and with 1 or 2 for errors.

    Parameters
    ----------
    output : path, optional
        The result as JUnit XML (.xml) or JSON (.json).
    """
    result = tracecal.check(answers, **options)
    if output:
        result.save(output)
    print(printable(f"{result}"))
    if result.exit_code:
        raise typer.Exit(result.exit_code)
