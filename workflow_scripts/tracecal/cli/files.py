"""The files that commands read and write, which must be apart."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracecal.errors import InputError

# All commands' options that name a file or folder which is read, and a file which is written.
READ = (
    *("answers", "second", "beside", "labels", "calibrator", "config", "parts"),
    *("weights", "estimators", "requests", "unlabelled", "after"),
)
WRITTEN = ("output", "report", "explorer", "picture", "record_file", "state", "watch")
# Verdicts are added to a file of some, and a calibrator may replace that of an earlier look.
MAY_SHARE = (("output", "labels"), ("output", "after"))


def require_apart(options: Mapping[str, Any]) -> None:
    """Raise `InputError` where a command would write to a file that it reads, or twice to one file.

    Links and other names of a file are that file.
    """
    outputs = [(name, options[name]) for name in WRITTEN if options.get(name)]
    inputs = [
        (name, file)
        for name in READ
        if options.get(name)
        for file in (options[name], *files_in(options[name]))
    ]
    for i, (name, path) in enumerate(outputs):
        for input_name, file in inputs + outputs[:i]:
            if is_same_file(path, file) and (name, input_name) not in MAY_SHARE:
                raise InputError(
                    f"{flag(name)} {path} is the file of {flag(input_name)}, too, and would "
                    "replace it: name another."
                )


def flag(name: str) -> str:
    """The option of a parameter, such as --error-rate."""
    return f"--{name.replace('_', '-')}"


def files_in(path: str) -> list[Path]:
    """List the files of a folder; none for anything else."""
    try:
        return [*Path(path).iterdir()]
    except OSError:
        return []


def is_same_file(path: str | Path, file: str | Path) -> bool:
    try:
        return Path(path).samefile(file)
    except OSError:  # one of them does not exist yet, or is no path
        pass
    try:
        return os.path.realpath(path) == os.path.realpath(file)
    except FileNotFoundError:  # the current folder was deleted
        return os.path.normpath(path) == os.path.normpath(file)
