"""Options that several of the command's parts share: a file of answers, and how it is read."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from tracecal.answers.read import Answers, listed, read_answers
from tracecal.answers.settings import Reading
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import Strict, parse

READING = ("format", "vocabulary", "greedy", "rounding", "stop_token", "processed", "model", "id")
READING += ("reasoning", "label", "columns", "filter", "wrong_rows")
# All commands' options that name a file or folder which is read, and a file which is written.
READ = ("answers", "second", "beside", "small", "large", "labels", "calibrator", "config", "parts")
READ += ("weights", "escalate_calibrator")
WRITTEN = ("output", "report", "explorer", "picture", "promise_file", "state", "watch")
MAY_SHARE = (("state", "answers"), ("output", "labels"))


def require_apart(options: Mapping[str, Any]) -> None:
    """Raise `InputError` where a command would write to a file that it reads, by whatever name or
    link; or twice to one file.

    A state of monitors may hold the answers that it watches, and verdicts are added to a file that
    holds some.
    """
    written = [(name, options[name]) for name in WRITTEN if options.get(name)]
    read = [
        (name, file)
        for name in READ
        if options.get(name)
        for file in (options[name], *_files_of(options[name]))
    ]
    for place, (name, path) in enumerate(written):
        for other, file in read + written[:place]:
            if _same(path, file) and (name, other) not in MAY_SHARE:
                raise InputError(
                    f"{_option(name)} {path} is the file of {_option(other)}, too, and would "
                    "replace it: name another."
                )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _files_of(path: str) -> list[Path]:
    """The files of a folder; none of anything else, such as a text in place of a path."""
    try:
        return [*Path(path).iterdir()]
    except OSError:
        return []


def _same(one: str | Path, other: str | Path) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:  # one of them is still to be made, or no path
        return Path(one).resolve() == Path(other).resolve()


def ending(*suffixes: str) -> Callable[[str], str]:
    """The type of an option for a file whose name has one of the suffixes."""

    def checked(path: str) -> str:
        if Path(path).suffix not in suffixes:
            raise argparse.ArgumentTypeError(
                f"{path}: expected a name that ends in {' or '.join(suffixes)}."
            )
        return path

    return checked


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
    with_rows: bool | Callable[[str, dict[str, Any]], Any] = False,
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


Command = Callable[[str, str, str], argparse.ArgumentParser]
