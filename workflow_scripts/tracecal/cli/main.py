"""Confidence for answers of language models: calibrate on labelled ones, then score new ones."""

import json
import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from pydantic import BaseModel
from typer.core import TyperCommand, TyperGroup

from tracecal.answers.reading import Reading
from tracecal.cli.agree import agree
from tracecal.cli.calibrate import calibrate
from tracecal.cli.card import card
from tracecal.cli.cascade import cascade
from tracecal.cli.explore import explore
from tracecal.cli.label import label
from tracecal.cli.options import DISTRIBUTION, Shown, command
from tracecal.cli.pick import pick
from tracecal.cli.plan import plan
from tracecal.cli.replay import replay
from tracecal.cli.score import score
from tracecal.cli.serve import serve
from tracecal.cli.watch import watch
from tracecal.errors import InputError
from tracecal.io.log import LOGGER, Printable


@command("know how files of answers are read", "tracecal reading")
def reading(ctx: typer.Context, reading: Annotated[Reading, Shown()]) -> None:
    """Say how files of answers are read.

    It may be JSON Lines, JSON, CSV, Arrow, Parquet, an Inspect log, or a state of 'serve
    --keep-texts'. All commands that read answers take these options; a file mostly says itself what
    they do (docs/reference/formats.md).
    """
    ctx.get_help()  # typer writes it


@command("know what can be set of a fit", "tracecal settings")
def settings() -> None:
    """List the keys of the file that --config names, with their defaults.

    They are those of a run's configuration: 'splits.count' is the key 'count' below 'splits'.
    """
    from tracecal.calibrator.fitting import FitSettings

    for key, default, what in keys_of(FitSettings):
        print(f"{key}: {default}", *textwrap.wrap(what, 92), sep="\n    ")


def keys_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, str, str]]:
    """A model's keys (with a dot those of models in it), defaults as JSON, and descriptions."""
    for name, field in model.model_fields.items():
        if isinstance(inner := field.get_default(), BaseModel):
            yield from keys_of(type(inner), f"{above}{name}.")
        else:
            yield f"{above}{name}", json.dumps(inner), field.description or ""


# In the order of their use.
COMMANDS = {
    "Labels": (pick, label, agree, plan),
    "Calibrated confidence": (calibrate, score, explore, card),
    "A small and a large model": (cascade,),
    "In operation": (serve, watch),
    "Answers without log-probabilities": (replay,),
    "More help": (reading, settings),
}


class _Listing(TyperCommand):
    """Takes several values behind an option that may be repeated: --columns a=x b=y."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        repeated = (one for one in self.params if getattr(one, "multiple", False))
        several = {flag for one in repeated for flag in one.opts}
        spread: list[str] = []
        flag, first = "", True
        for arg in args:
            if arg.startswith("-"):
                flag, first = arg, True
            elif flag in several and not first:
                spread.append(flag)
            else:
                first = False
            spread.append(arg)
        return super().parse_args(ctx, spread)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, or 1 after logging an `InputError` or an error of the system.

    Without arguments it says which command is for what. Raises `SystemExit` after help (0), and
    for options that there are not (2).
    """
    # Of products as small as ours more threads spend more time waiting than is saved.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Printable("tracecal: %(message)s"))
    logging.basicConfig(handlers=[handler])
    LOGGER.setLevel(logging.INFO)
    try:
        ended = commands().main(arguments, prog_name="tracecal", standalone_mode=False)
    except typer.TyperException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except InputError as error:
        LOGGER.error("error: %s", error)
        return 1
    except OSError as error:  # a full disk, a missing permission
        LOGGER.error("error: %s: %s.", error.filename or "the output", error.strerror)
        return 1
    if ended is not None:
        raise SystemExit(ended)
    return 0


def commands() -> TyperGroup:
    """The command with all of its commands."""
    app = typer.Typer(
        rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.callback(invoke_without_command=True, help=__doc__)(_start)
    for panel, several in COMMANDS.items():
        for one in several:
            example = f"Example: {one.example}"
            app.command(cls=_Listing, rich_help_panel=panel, epilog=example)(one.run)
    return typer.main.get_command(app)


def _start(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="show the version and exit")] = False,
) -> None:
    if version:
        print(f"tracecal {installed_version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(wishes())


def wishes() -> str:
    """Which command grants which wish."""
    lines = [__doc__ or ""]
    for panel, several in COMMANDS.items():
        lines += ["", panel]
        for one in several:
            lines += [f"  {one.wish}:", f"      {one.example}"]
    return "\n".join([*lines, "", "A command's options: 'tracecal COMMAND --help'."])


def installed_version() -> str:
    """The installed version; the checkout's, where the package is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(from a checkout, not installed)"


if __name__ == "__main__":
    sys.exit(main())
