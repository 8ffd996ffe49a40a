"""`tracecal calibrate`: a calibrator fitted on labelled answers."""

from pathlib import Path
from typing import Annotated

import typer

from tracecal.cli.options import (
    MOST,
    PARTS,
    SEED,
    AnswersFile,
    AsRead,
    Config,
    Custom,
    command,
    ending,
    read_given,
    require_apart,
)
from tracecal.io.log import LOGGER, printable
from tracecal.io.settings import parse


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
    entropies come from listed log-probabilities need --vocabulary: 'tracecal reading'.
    """
    from tracecal.apps import report as pages
    from tracecal.apps.explorer.of_file import fits, page_data, unseen
    from tracecal.apps.explorer.page import page
    from tracecal.calibration.calibrator import run_on
    from tracecal.calibration.fit import FitSettings, calibrate_answers, labelled
    from tracecal.calibration.parts import labelled_parts
    from tracecal.estimators.custom import custom_scores
    from tracecal.io.files import write_json, write_text
    from tracecal.io.input_files import read_yaml

    explorer = str(Path(report).with_suffix(".answers.html")) if report else None
    require_apart({"answers": answers, "output": output, "report": report, "explorer": explorer})
    settings = parse(FitSettings, (read_yaml(config) if config else None) or {}, config)
    custom = custom_scores(estimators)
    given = read_given(answers, reading, with_rows=bool(explorer))
    if warning := run_on(given.frame):
        LOGGER.warning("%s", warning)
    frame, of_parts = labelled_parts(given, parts)
    revision = revision or given.metadata.get("revision")
    stored = calibrate_answers(
        frame, task, settings, revision, reading.vocabulary, of_parts, custom
    )
    write_json(stored, output)
    found = pages.found(stored, labelled(frame, task, settings, of_parts, custom), settings)
    own_task = given.metadata.get("task")
    typed = pages.commands(found, answers, output, reading.model_dump(), explorer, own_task)
    print(printable(pages.summary(found, typed)))
    if explorer:
        shown = unseen(fits(stored, output), found.predicted, frame)
        name = Path(answers).name
        write_text(page(page_data(given, name, shown, MOST, SEED, task, of_parts)), explorer)
        write_text(pages.render(found, typed, Path(explorer).name), report)
        LOGGER.info("open %s in a browser; %s shows the answers", report, explorer)
