"""`tracecal calibrate`: a calibrator fitted on labelled answers."""

from pathlib import Path
from typing import Any

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.files import require_apart
from tracecal.cli.options import FIRST_READING, reading_options
from tracecal.errors import InputError
from tracecal.io.log import LOGGER, printable


@command(
    "calibrate confidence on labelled answers",
    "tracecal calibrate --answers labelled.jsonl --task svamp --vocabulary 151936 --output C.json",
    options_of="calibrate",
    flags={
        "error_rates": "--error-rate",
        "overall_errors": "--overall-error",
        "all_estimators": "--all",
    },
    endings={"report": (".html",)},
    api_only=["revision"],
    usual=["report", "error_rates", "overall_errors"],
    models={"reading": reading_options(*FIRST_READING)},
)
def calibrate(
    *,
    answers: str,
    task: str,
    output: str,
    reading: Reading,
    report: str | None = None,
    error_rates: list[float] | None = None,
    overall_errors: list[float] | None = None,
    all_estimators: bool = False,
    **options: Any,
) -> None:
    """Fit a calibrator on labelled answers.

    Prints which answers to keep, and what is guaranteed of them. With --also judge=PATH the fit
    takes a further number or verdict of each row beside the trace.

    Parameters
    ----------
    output : path
        The calibrator's JSON file.
    report : path, optional
        An HTML page with what is printed, and more.
    all_estimators : bool
        Print how well every estimator predicts, too.
    """
    from tracecal.answers.answers import answers_in
    from tracecal.answers.facts import question_fields, value_at

    explorer = str(Path(report).with_suffix(".answers.html")) if report else None
    require_apart({"answers": answers, "output": output, "report": report, "explorer": explorer})
    by = options.get("by")

    def fields(example_id: str, row: dict[str, Any]) -> dict[str, Any]:
        shown = question_fields(example_id, row) if report else {}
        value = None if by is None else value_at(row, by)
        return shown if by is None or value is None else shown | {by: value}

    labelled = answers_in(answers, reading, fields if report or by is not None else False)
    calibrator = tracecal.calibrate(
        labelled,
        task,
        reading=reading,
        error_rates=error_rates or (),
        overall_errors=overall_errors or (),
        **options,
    )
    if options.get("after") is None and (earlier := earlier_look(output, calibrator)):
        LOGGER.info("%s", earlier)
    calibrator.save(output)
    stated_task = labelled.metadata.get("task")
    summary = calibrator.report(all_estimators=all_estimators or bool(report))
    summary = summary.with_commands(answers, output, reading, explorer, stated_task)
    for warning in summary.warnings:
        LOGGER.warning("%s", warning)
    if report and explorer:
        from tracecal.explorer.explore import explore_labelled

        explore_labelled(labelled, explorer, calibrator, summary.predictions)
        summary.save(report, Path(explorer).name)
        LOGGER.info("open %s in a browser; %s shows the answers", report, explorer)
    print(printable(f"{summary.text}\n\n{summary.table}" if all_estimators else summary.text))


def earlier_look(output: str, calibrator: "tracecal.Calibrator") -> str | None:
    """Say that a file holds an earlier look at some of the labels, and how to count both."""
    from tracecal.calibrator.fitting import share_answers
    from tracecal.calibrator.schema import CalibratorFile

    try:
        earlier = CalibratorFile.read(output).fitted_on
    except InputError:
        return None
    data = calibrator.fitted_on
    is_same = data.looks[-1].digest in [look.digest for look in earlier.looks]
    if is_same or not share_answers(data, earlier):
        return None
    return (
        f"{output} held a look at {earlier.n:,} labels, some of them the same, and is replaced: to "
        "count both looks, calibrate on those again into another file, and give it with --after"
    )
