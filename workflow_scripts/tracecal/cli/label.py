"""`tracecal label`: answers labelled on a page of this machine."""

from pathlib import Path
from typing import Any

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command, require_installed
from tracecal.cli.files import require_apart
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

SEARCH = ("error_rate", "population", "estimator")


@command(
    "label answers",
    "tracecal label pick.jsonl --output labelled.jsonl",
    options_of="LabelSearch",
    usual=["output"],
    api_only=["confidence", "seed"],
    panels={"As few labels as a guarantee needs": SEARCH},
)
def label(
    *,
    answers: str,
    reading: Reading,
    output: str | None = None,
    calibrator: str | None = None,
    task: str | None = None,
    parts: str | None = None,
    port: int = 0,
    error_rate: float | None = None,
    labels: str | None = None,
    **search_options: Any,
) -> None:
    """Label answers on a page of this machine.

    Shows one answer after the other, without its scores; each verdict is on disk before the next.
    Run it again to continue where you stopped.

    Parameters
    ----------
    output : path, optional
        Rows with verdicts (default: beside, .labelled.jsonl).
    calibrator : path, optional
        A calibrator's JSON file: shows probabilities afterwards.
    port : int
        To serve the page on; 0: any free one.
    error_rate : float, optional
        Ask only for the labels that its guarantee needs.
    labels : path, optional
        Take verdicts of a table or an export (FILE:custom_id:verdict names columns); no page.
    """
    require_installed("'tracecal label'", "serve", "aiohttp")
    from tracecal.answers.labels import read_labels
    from tracecal.explorer.page_answers import load_page_answers
    from tracecal.labelling.label_page import (
        LabelPage,
        ask_by_search,
        ask_in_order,
        calibrate_command,
        serve_page,
    )
    from tracecal.labelling.verdicts import VerdictFile

    if not Path(answers).name:
        raise InputError(f"{answers!r} names no file: give the file of the answers to label.")
    output = output or str(Path(answers).with_suffix(".labelled.jsonl"))
    record = Path(output).with_suffix(".promise.json")
    inputs = {"answers": answers, "calibrator": calibrator, "parts": parts, "labels": labels}
    require_apart(inputs | {"output": output, "record_file": record})
    content = load_page_answers(answers, calibrator, task, parts, reading)
    search = None
    if error_rate is not None:
        search = tracecal.LabelSearch(content, error_rate, record_file=record, **search_options)
    rows, part_names = content.rows_to_judge()
    verdicts = VerdictFile(output, rows, part_names, asked_for=search is not None)
    if labels:
        judged = read_labels(labels, reading)
        if n_unknown := verdicts.import_labels(judged.by_id, judged.asked_for):
            LOGGER.warning("%s: %d verdict(s) are on other answers", labels, n_unknown)
        LOGGER.info("%s holds %d verdicts", verdicts.path, len(verdicts.verdicts))
    else:
        task = content.fitted_on.task if content.fitted_on else task or Path(answers).stem
        following = calibrate_command(output, task, reading, parts)
        ask = ask_by_search(search) if search else ask_in_order([*rows])
        serve_page(LabelPage(content.data, verdicts, ask, following), port)
        LOGGER.info("%s holds %d verdicts on %d answers", output, len(verdicts.verdicts), len(rows))
        if search is None:
            LOGGER.info("next: %s", following)
    if search:
        example_id, state = ask_by_search(search)(verdicts.labels)
        if example_id is not None:
            state += f"; the next answer to label is {example_id!r}"
        LOGGER.info("%s: %s", record, state)
