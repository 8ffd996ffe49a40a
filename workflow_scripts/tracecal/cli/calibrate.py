"""`tracecal calibrate`: a calibrator fitted on labelled answers."""

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
    read_given,
)
from tracecal.io.log import LOGGER, printable
from tracecal.io.settings import parse

FIT = "The fit"


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

    Prints how well each estimator predicts, and which error rates its thresholds guarantee. Answers
    whose entropies come from listed log-probabilities need --vocabulary: 'tracecal reading'.
    """
    from tracecal.apps import report as pages
    from tracecal.calibration import planning
    from tracecal.calibration.calibrator import default_estimator, run_on
    from tracecal.calibration.fit import FitSettings, calibrate_answers, labelled
    from tracecal.calibration.parts import labelled_parts
    from tracecal.estimators.custom import custom_scores
    from tracecal.io.files import write_json, write_text
    from tracecal.io.input_files import read_yaml

    settings = parse(FitSettings, (read_yaml(config) if config else None) or {}, config)
    custom = custom_scores(estimators)
    given = read_given(answers, reading)
    if warning := run_on(given.frame):
        LOGGER.warning("%s", warning)
    frame, of_parts = labelled_parts(given, parts)
    revision = revision or given.metadata.get("revision")
    stored = calibrate_answers(
        frame, task, settings, revision, reading.vocabulary, of_parts, custom
    )
    write_json(stored, output)
    known = labelled(frame, task, settings, of_parts, custom)
    measured = pages.quality(known, task, settings)
    estimator = default_estimator(stored)
    control, groups = stored[estimator]["risk_control"], known.frame["group_id"].n_unique()
    certified = pages.guarantees(control, groups)
    outlook = planning.outlook(stored, certified, settings.splits.calibration_share, settings.seed)
    print(printable(pages.summary(stored, measured, certified, estimator, outlook)))
    if report:
        level = settings.bootstrap.level
        page = pages.render(stored, measured, certified, estimator, level, outlook)
        write_text(page, report)
