"""`tracecal calibrate`: a calibrator fitted on labelled answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.files import require_apart
from tracecal.io.log import LOGGER, printable


@command(
    "calibrate confidence on labelled answers",
    "tracecal calibrate --answers labelled.jsonl --task svamp --vocabulary 151936 --output C.json",
    options_of="calibrate",
    endings={"report": (".html",)},
)
def calibrate(
    *,
    answers: str,
    task: str,
    output: str,
    reading: Reading,
    report: str | None = None,
    **options: Any,
) -> None:
    """Fit a calibrator on labelled answers.

    Prints how well each estimator predicts, and which error rates are guaranteed. Answers whose
    entropies come from listed log-probabilities need --vocabulary: 'tracecal reading'. With
    --also judge=PATH the fit takes a further number or verdict of each row beside the trace.

    Parameters
    ----------
    output : path
        The calibrator's JSON file.
    report : path, optional
        An HTML page with what is printed, and more.
    """
    from tracecal.answers.sources import answers_in
    from tracecal.calibrator.report import commands

    explorer = str(Path(report).with_suffix(".answers.html")) if report else None
    require_apart({"answers": answers, "output": output, "report": report, "explorer": explorer})
    labelled = answers_in(answers, reading, keep_rows=bool(report))
    calibrator = tracecal.calibrate(labelled, task, reading=reading, **options)
    calibrator.save(output)
    summary = calibrator.report()
    stated_task = labelled.metadata.get("task")
    typed = commands(summary.found, answers, output, dict(reading), explorer, stated_task)
    summary = replace(summary, typed=typed)
    print(printable(summary.text))
    if report:
        summary.save(report, labelled)
        LOGGER.info("open %s in a browser; %s shows the answers", report, explorer)
