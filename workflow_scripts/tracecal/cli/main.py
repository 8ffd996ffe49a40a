"""Confidence for answers of language models: calibrate on labelled ones, then score new ones."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup

import tracecal
from tracecal.cli.api_commands import agree, card, check, explore, pick, plan, replay, watch
from tracecal.cli.calibrate import calibrate
from tracecal.cli.command import Command
from tracecal.cli.label import label
from tracecal.cli.reading import reading
from tracecal.cli.score import score
from tracecal.cli.serve import serve
from tracecal.errors import InputError
from tracecal.io.log import LOGGER, Printable, name_arguments

# In the order of their use.
PANELS: dict[str, tuple[Command, ...]] = {
    "Your answers": (reading,),
    "Labels": (pick, label, agree, plan),
    "Calibrated confidence": (calibrate, score, explore, card),
    "In operation": (serve, watch, check),
    "Answers without log-probabilities": (replay,),
}
# How the output is opened where a shell closed it: what a command says is lost with an error.
CLOSED_OUTPUTS = ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY))
READER_GONE = 128 + signal.SIGPIPE
COMMANDS = {command.name: command for commands in PANELS.values() for command in commands}


class LazyGroup(TyperGroup):
    """Lists commands without their options: only the one that is typed loads the API."""

    # Contexts have a base class, which typer keeps private.
    def resolve_command(  # type: ignore[override]
        self, ctx: typer.Context, args: list[str]
    ) -> tuple[str | None, TyperCommand | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)  # of an unknown command: None
        return name, COMMANDS[name].build() if name in COMMANDS else None, rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, or 1 after logging an `InputError` or an error of the system.

    Without arguments it says which command is for what. Raises `SystemExit` after help (0), for
    unknown options (2), and where the reader of the output, such as `head`, has enough
    (141, as a shell says of programs that end by SIGPIPE).
    """
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # an encoding may lack letters of a name
        sys.stdout.reconfigure(errors="backslashreplace")
    # A third of the full collections of garbage, which walk all objects of all modules.
    gc.set_threshold(*gc.get_threshold()[:2], 30)
    # More threads spend more time waiting than they save on products as small as ours.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Printable("tracecal: %(message)s"))
    logging.basicConfig(handlers=[handler])
    LOGGER.setLevel(logging.INFO)
    LOGGER.removeFilter(name_arguments)
    try:
        _require_text(sys.argv[1:] if arguments is None else arguments)
        status = _run_and_flush(arguments)
    except typer.TyperException as error:
        error.show()  # type: ignore[attr-defined]  # those of typer's options have it
        raise SystemExit(error.exit_code) from error
    except InputError as error:
        LOGGER.error("error: %s", error.args[0])
        return 1
    except BrokenPipeError as error:
        raise SystemExit(READER_GONE) from error
    except OSError as error:  # a full disk, a missing permission
        LOGGER.error("error: %s: %s.", error.filename or "the output", error.strerror or error)
        return 1
    except MemoryError:
        LOGGER.error("error: the files do not fit into memory: give fewer rows.")
        return 1
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # polars', which is no `Exception`
            raise
        LOGGER.error("error: a file that is read cannot be unpacked (%s).", error)
        return 1
    finally:
        LOGGER.addFilter(name_arguments)
    if status is not None:
        raise SystemExit(status)
    return 0


def _open_closed_streams() -> None:
    """Open streams that the shell closed (``>&-``): writes to its output are then errors.

    No other file gets their numbers, at which libraries write.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), *CLOSED_OUTPUTS):
        if getattr(sys, name) is None and not _is_open(number):
            opened = os.open(os.devnull, flags)  # the lowest free number
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _run_and_flush(arguments: Sequence[str] | None) -> int | None:
    """Run the command, and write the output here, where its errors are told."""
    try:
        return group().main(arguments, prog_name="tracecal", standalone_mode=False)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer's handling of it
            raise ended.__context__ from None
        raise
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            with suppress(OSError):  # Python would try again at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


def _require_text(arguments: Sequence[str]) -> None:
    """Raise `InputError` for an argument that is not UTF-8: files that are written could not say
    it."""
    for argument in arguments:
        try:
            if b"\0" in argument.encode():
                raise ValueError
        except ValueError:
            raise InputError(
                f"the argument {argument!r} is not UTF-8: rename the file, or give another text."
            ) from None


def group() -> TyperGroup:
    """`tracecal` with all of its commands."""
    app = typer.Typer(
        cls=LazyGroup,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True, help=__doc__)(_start)
    lazy_group = typer.main.get_command(app)
    assert isinstance(lazy_group, LazyGroup)
    for panel, commands in PANELS.items():
        for command in commands:
            lazy_group.add_command(command.stub(panel))
    return lazy_group


def _start(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="show the version and exit")] = False,
) -> None:
    if version:
        print(f"tracecal {tracecal.__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(wishes())


def wishes() -> str:
    """Which command grants which wish."""
    lines = [__doc__ or ""]
    for panel, commands in PANELS.items():
        lines += ["", panel]
        for command in commands:
            lines += [f"  {command.wish}:", f"      {command.example}"]
    return "\n".join([*lines, "", "A command's options: 'tracecal COMMAND --help'."])


if __name__ == "__main__":
    sys.exit(main())
