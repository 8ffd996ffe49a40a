"""`tracecal watch`: the monitors over files of answers and labels, with a state that goes on."""

from typing import Annotated

import typer

from tracecal.answers.settings import Reading
from tracecal.calibration.settings import Watching
from tracecal.cli.options import (
    AnswersFile,
    CalibratorFile,
    ErrorRate,
    Shown,
    TaskName,
    command,
    read_given,
)
from tracecal.io.log import LOGGER, printable

ALARMS = {"False alarms": tuple(Watching.model_fields)}


@command(
    "know when traffic is no longer like the calibration's",
    "tracecal watch --answers log.jsonl --calibrator C.json --state state.db",
)
def watch(
    answers: AnswersFile,
    calibrator: CalibratorFile,
    state: Annotated[str, typer.Option(help="SQLite file of the monitors, made if absent")],
    watching: Annotated[Watching, Shown(panels=ALARMS)],
    reading: Annotated[Reading, Shown(defaults={"wrong_rows": "skip"}, hidden=True)],
    labels: Annotated[
        str | None, typer.Option(help="JSON Lines with id and correct, of some of the answers")
    ] = None,
    error_rate: ErrorRate = None,
    estimator: Annotated[str | None, typer.Option(help="one of the calibrator's file")] = None,
    task: TaskName = None,
) -> None:
    """Say when traffic is no longer like the calibration's.

    You may look after every answer; with the same state the next call goes on where this one
    ended. Alarms hold for answers that are independent of one another: where neighbours are alike,
    use --one-per or --block. Rows that cannot be read are left out.
    """
    from tracecal.answers.read import listed
    from tracecal.calibration.calibrator import load, reading_for
    from tracecal.monitoring import traffic

    fitted = load(calibrator, estimator)
    one_per = watching.one_per
    given = read_given(
        answers,
        reading.model_copy(update=reading_for(fitted.fitted_on, reading.model_dump())),
        lambda name, row: (traffic.choice_of(name, row), traffic.key_of(row, one_per)),
    )
    if one_per is not None:
        traffic.require_keys([key for _, key in given.rows], one_per)
    batch = traffic.watched(given.frame, fitted, error_rate, task or given.metadata.get("task"))
    judged, wrong = traffic.read_labels(labels) if labels else ([], [])
    if wrong:
        LOGGER.warning("%s: left out %s", labels, listed(wrong))
    for warning in traffic.without_reference(fitted, watching):
        LOGGER.warning("%s", warning)
    alarms = traffic.alarm_settings(fitted, watching, error_rate)
    store = traffic.Store(state, traffic.identity(fitted, error_rate), alarms, fitted.reference)
    try:
        told = store.add_in_parts(given.frame["example_id"].to_list(), batch, given.rows)
        print(printable(traffic.summary(store, told, store.add_labels(judged))))
    finally:
        store.close()
