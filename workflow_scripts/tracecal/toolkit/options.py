"""Options that several of the command's parts share: a file of answers, and how it is read."""

import argparse
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from tracecal.errors import InputError
from tracecal.inputs.schema import Strict, parse
from tracecal.jobs.progress import LOGGER
from tracecal.logs.options import Reading
from tracecal.logs.read import Answers, listed, read_answers

READING = ("format", "vocabulary", "greedy", "rounding", "stop_token", "processed", "model", "id")
READING += ("reasoning", "label", "columns", "filter", "wrong_rows")


def add_answers(command: argparse.ArgumentParser, first: bool = False) -> None:
    """Add the options that name a file of answers, as the `first` argument, and how it is read."""
    what = "JSON Lines, JSON, CSV, Arrow, Parquet, or the state of 'serve --keep-texts'"
    if first:
        command.add_argument("answers", help=what)
    else:
        command.add_argument("--answers", required=True, help=what)
    add_options(command, Reading, READING)


def add_calibrator(command: argparse.ArgumentParser) -> None:
    """Add the options that name a calibrator's file, and the error rate of the answers to keep."""
    command.add_argument("--calibrator", required=True, help="the calibrator's JSON file")
    command.add_argument(
        "--error-rate", type=float, help="target error rate of the answers to keep"
    )


def add_task(command: argparse.ArgumentParser) -> None:
    """Add the option that says of answers which task they are of."""
    command.add_argument(
        "--task", help="the calibrator's task, where the answers name it otherwise"
    )


def add_options(
    command: argparse.ArgumentParser, schema: type[Strict], names: Iterable[str]
) -> None:
    """Add some fields of a schema as a command's options."""
    for name in names:
        field = schema.model_fields[name]
        option: dict[str, Any] = {"help": field.description, "default": field.get_default()}
        if field.is_required():
            option = {"help": field.description, "required": True}
        if field.annotation is bool:
            option["action"] = "store_true"
        elif field.annotation == dict[str, str]:
            option |= {"nargs": "+", "metavar": "COLUMN=PATH"}
        elif field.annotation == list[str]:
            option |= {"nargs": "+", "metavar": "NAME"}
        elif get_origin(field.annotation) is Literal:
            option["choices"] = get_args(field.annotation)
        command.add_argument(f"--{name.replace('_', '-')}", **option)


def read_given(
    args: argparse.Namespace,
    vocabulary: int | None = None,
    with_rows: bool = False,
    path: str | None = None,
) -> Answers:
    """The answers of a file, by default the one that a command names, read as its options say;
    raises `InputError`.

    `vocabulary` counts where the options name none; `with_rows` as in `read_answers`.
    """
    options = {name: getattr(args, name) for name in READING}
    options["vocabulary"] = options["vocabulary"] or vocabulary
    if options["columns"]:
        pairs = [pair.partition("=") for pair in options["columns"]]
        if wrong := [name for name, equals, path in pairs if not (name and equals and path)]:
            raise InputError(
                f"--columns {wrong[0]}: expected COLUMN=PATH, such as answer=output.text."
            )
        options["columns"] = {name: path for name, _, path in pairs}
    path = path or args.answers
    answers = read_answers(path, parse(Reading, options, "options"), with_rows=with_rows)
    if answers.wrong:
        LOGGER.warning("%s: left out %s", path, listed(answers.wrong))
    return answers
