"""`tracecal label`: answers labelled on a page of this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tracecal.calibration.settings import SEED
from tracecal.cli.options import (
    FILE,
    PARTS,
    AsRead,
    TaskName,
    command,
    require_apart,
    require_installed,
)
from tracecal.io.log import LOGGER

if TYPE_CHECKING:
    from tracecal.labelling.verdicts import Verdicts

GUARANTEE = "As few labels as a guarantee needs"
ELSEWHERE = "Verdicts given elsewhere"


@command("label answers", "tracecal label pick.jsonl --output labelled.jsonl")
def label(
    answers: Annotated[str, typer.Argument(help=FILE)],
    reading: AsRead,
    output: Annotated[
        str | None, typer.Option(help="rows with verdicts (default: beside, .labelled.jsonl)")
    ] = None,
    calibrator: Annotated[
        str | None, typer.Option(help="a calibrator's JSON file: shows probabilities afterwards")
    ] = None,
    task: TaskName = None,
    parts: Annotated[str | None, typer.Option(help=f"judge parts by themselves: {PARTS}")] = None,
    port: Annotated[int, typer.Option(help="to serve the page on; 0: any free one")] = 0,
    error_rate: Annotated[
        float | None,
        typer.Option(
            help="ask only for the labels that its guarantee needs",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="of that guarantee", rich_help_panel=GUARANTEE)
    ] = 0.9,
    population: Annotated[
        Literal["finite", "further"],
        typer.Option(
            metavar="NAME",
            help="about the answers of the file (finite), or further ones like them (further)",
            rich_help_panel=GUARANTEE,
        ),
    ] = "finite",
    largest_group: Annotated[
        int | None,
        typer.Option(
            help="with further: how many answers of a question count at most (default: as many as "
            "the largest of the file has)",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="whose score or probability decides (default: the best)",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="of the order of asking", rich_help_panel=GUARANTEE)
    ] = SEED,
    labels: Annotated[
        str | None,
        typer.Option(
            help="take the verdicts from an export of Label Studio or Argilla, or from a file of "
            "this command; no page",
            rich_help_panel=ELSEWHERE,
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            help="the question of the export that asks for the verdict", rich_help_panel=ELSEWHERE
        ),
    ] = None,
) -> None:
    """Label answers on a page of this machine.

    Shows one answer after the other, without its scores; each verdict is on disk before the next.
    Started again, it goes on where it was.
    """
    require_installed("'tracecal label'", "serve", "aiohttp")
    from tracecal.api import labels as api
    from tracecal.labelling.page import LabelPage, ask_in_order, calibrate_command, serve_page
    from tracecal.labelling.verdicts import Verdicts

    output = output or str(Path(answers).with_suffix(".labelled.jsonl"))
    outcome = Path(output).with_suffix(".promise.json")
    files = {"answers": answers, "calibrator": calibrator, "parts": parts, "labels": labels}
    require_apart(files | {"output": output, "promise_file": outcome})
    shown = api.shown_in(answers, calibrator, task, parts, reading)
    search = None
    if error_rate is not None:
        search = api.LabelSearch(
            shown,
            error_rate,
            estimator=estimator,
            confidence=confidence,
            population=population,
            largest_group=largest_group,
            seed=seed,
            promise_file=outcome,
        )
    rows, names = shown.to_judge()
    verdicts = Verdicts(output, rows, names)
    if labels:
        _take(verdicts, labels, question, reading.wrong_rows == "skip")
    else:
        own_task = shown.fitted_on.task if shown.fitted_on else task or Path(answers).stem
        then = calibrate_command(output, own_task, dict(reading) | {"parts": parts})
        ask = search.query.ask if search else ask_in_order([*rows])
        serve_page(LabelPage(shown.data, verdicts, ask, then), port)
        LOGGER.info("%s holds %d verdicts on %d answers", output, len(verdicts.given), len(rows))
        LOGGER.info("next: %s", then)
    if search:
        following, said = search.query.ask(verdicts.given)
        then = "" if following is None else f"; the next label needed is that of {following!r}"
        LOGGER.info("%s: %s%s", outcome, said, then)


def _take(verdicts: "Verdicts", labels: str, question: str | None, skip: bool) -> None:
    """Write the verdicts of an export, in the order of the answers."""
    from tracecal.labelling.annotations import read_annotations

    others = verdicts.take(read_annotations(labels, question, skip))
    if others:
        LOGGER.warning("%s: %d verdict(s) are on other answers", labels, others)
    LOGGER.info("%s holds %d verdicts", verdicts.path, len(verdicts.given))
