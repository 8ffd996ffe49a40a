"""`tracecal calibrate`: a calibrator fitted on labelled answers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tracecal.cli.options import (
    PARTS,
    AnswersFile,
    AsRead,
    Config,
    Custom,
    command,
    ending,
    require_apart,
)
from tracecal.io.log import LOGGER, printable


@command(
    "calibrate confidence on labelled answers",
    "tracecal calibrate --answers labelled.jsonl --task svamp --vocabulary 151936 --output C.json",
)
def calibrate(
    answers: AnswersFile,
    task: Annotated[str, typer.Option(help="a name for the task")],
    output: Annotated[str, typer.Option(help="the calibrator's JSON file")],
    reading: AsRead,
    report: Annotated[
        str | None,
        typer.Option(callback=ending(".html"), help="an HTML page with what is printed, and more"),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="revision of the model")] = None,
    parts: Annotated[
        str | None, typer.Option(help=f"parts, where answers are labelled by part: {PARTS}")
    ] = None,
    estimators: Custom = None,
    config: Config = None,
) -> None:
    """Fit a calibrator on labelled answers.

    Prints how well each estimator predicts, and which error rates are guaranteed. Answers whose
    entropies come from listed log-probabilities need --vocabulary: 'tracecal reading'. With
    --also judge=PATH the fit takes a further number or verdict of each row beside the trace.
    """
    from tracecal.answers.sources import answers_in
    from tracecal.calibrator import calibrator as api
    from tracecal.calibrator.report import commands

    explorer = str(Path(report).with_suffix(".answers.html")) if report else None
    require_apart({"answers": answers, "output": output, "report": report, "explorer": explorer})
    given = answers_in(answers, reading, with_rows=bool(report))
    fit = {"config": config, "parts": parts, "estimators": estimators, "revision": revision}
    calibrator = api.calibrate(given, task, **fit, reading=reading)
    calibrator.save(output)
    found = calibrator.report()
    own_task = given.metadata.get("task")
    typed = commands(found.found, answers, output, dict(reading), explorer, own_task)
    found = replace(found, typed=typed)
    print(printable(found.text))
    if report:
        found.save(report, given)
        LOGGER.info("open %s in a browser; %s shows the answers", report, explorer)
