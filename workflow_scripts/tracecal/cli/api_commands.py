"""The commands that call a function of the API and print or save what it returns.

`pick`, `agree` and `plan` are about labels, `check` and `watch` about a guarantee in operation,
`card` about a calibrator's file; `explore` makes a page, and `replay` traces answers.
"""

from typing import Any

import typer

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command, require_installed
from tracecal.cli.options import reading_options
from tracecal.io.log import LOGGER, printable
from tracecal.monitoring.monitor_settings import MonitorSettings

ALARM = 3  # status after an alarm


@command(
    "choose answers to label",
    "tracecal pick --answers all.jsonl --number 200 --output pick.jsonl",
    options_of="pick",
    api_only=["seed"],
)
def pick(*, answers: str, number: int, output: str, **options: Any) -> None:
    rows = tracecal.pick(answers, number, output=output, **options)
    LOGGER.info("%s holds %d answers; label them from the first on", output, rows.height)


@command(
    "know how far two people's labels agree",
    "tracecal agree a.labelled.jsonl b.labelled.jsonl",
    options_of="agree",
    api_only=["seed"],
    arguments=["answers", "second"],
)
def agree(**options: Any) -> None:
    print(printable(f"{tracecal.agree(**options)}"))


@command(
    "look at answers and their confidence",
    "tracecal explore --answers log.jsonl --calibrator C.json --output answers.html",
    options_of="explore",
    endings={"output": (".html",)},
    usual=["calibrator", "error_rate"],
)
def explore(**options: Any) -> None:
    tracecal.explore(**options)


@command(
    "compute exact log-probabilities of answers that lack them",
    "tracecal replay --answers samples_svamp.jsonl --weights path/to/model --output replayed.arrow",
    options_of="replay",
    api_only=["batch_size"],
    endings={"output": (".arrow",)},
)
def replay(*, answers: str, weights: str, output: str, **options: Any) -> None:
    require_installed("'tracecal replay'", "replay", "torch", "transformers", "safetensors")
    tracecal.replay(answers, weights, output=output, **options)


@command(
    "know how many labels a guarantee needs",
    "tracecal plan --calibrator C.json --error-rate 0.05 --picture plan.svg",
    options_of="plan",
    endings={"picture": (".svg",)},
    usual=["calibrator", "picture"],
    api_only=["confidence", "seed"],
    panels={"Without a calibrator": ("accuracy", "auroc")},
)
def plan(
    *,
    error_rate: float,
    calibrator: str | None = None,
    picture: str | None = None,
    **options: Any,
) -> None:
    """
    Parameters
    ----------
    picture : path, optional
        An .svg of the table.
    """
    from tracecal.io.regular_files import write_text

    forecast = tracecal.plan(error_rate, calibrator=calibrator, **options)
    if picture:
        write_text(forecast.picture(), picture)
    print(forecast)


@command(
    "check a guarantee with new labels, as in CI",
    "tracecal check --answers new.jsonl --labels l.csv --calibrator C.json --error-rate 0.2",
    options_of="check",
    endings={"output": (".xml", ".json")},
    usual=["error_rate", "overall_error", "output"],
    api_only=["confidence", "estimator"],
    models={"reading": reading_options("labels")},
)
def check(*, answers: str, output: str | None = None, **options: Any) -> None:
    """Say whether a guarantee fits the labels of new answers, in three lines.

    It ends with 0 where it does, with 3 where the labels contradict it or the answers are unlike
    the calibration's, with 4 where labels are too few to tell, and with 1 or 2 for errors.

    Parameters
    ----------
    output : path, optional
        The result as JUnit XML (.xml) or JSON (.json).
    """
    result = tracecal.check(answers, **options)
    if output:
        result.save(output)
    print(printable(f"{result}"))
    if result.exit_code:
        raise typer.Exit(result.exit_code)


@command(
    "know what a calibrator was fitted on, and what it guarantees",
    "tracecal card C.json --output card.html",
    arguments=["calibrator"],
    endings={"output": (".html",)},
)
def card(
    *,
    calibrator: str,
    check: bool = False,
    output: str | None = None,
) -> None:
    """Say in plain words what a calibrator's file holds.

    What it was fitted on, what it guarantees, and what it must not be used for. --check ends with
    1 where the file is no calibrator, or was changed.

    Parameters
    ----------
    calibrator : path
        A calibrator's JSON file.
    check : bool
        Only say whether it fits the schema and its checksum.
    output : path, optional
        The card as a page, .html.
    """
    from tracecal.calibrator.card import verify

    if check:
        print(printable(verify(calibrator)))
        return
    text = tracecal.Calibrator.load(calibrator).card()
    if output:
        text.save(output)
        LOGGER.info("open %s in a browser", output)
    print(printable(f"{text}"))


@command(
    "be alerted when new answers drift",
    "tracecal watch --answers log.jsonl --calibrator C.json --state state.db",
    options_of="Monitors",
    texts_of=["Monitors.watch", "Monitors.judge"],
    api_only=["estimator"],
    usual=["labels", "error_rate"],
    panels={"False alarms": tuple(MonitorSettings.model_fields)},
    models={"reading": reading_options(defaults={"wrong_rows": "skip"})},
)
def watch(
    *,
    answers: str,
    calibrator: str,
    state: str,
    reading: Reading,
    labels: str | None = None,
    task: str | None = None,
    **options: Any,
) -> None:
    """Raise an alarm when new answers drift away from the calibration's.

    You may look after every answer; with the same state the next call goes on where this one
    ended. Alarms hold for answers that are independent of one another: where neighbours are alike,
    use --one-per. Rows that cannot be read are left out. It ends with 3 after an alarm, and says
    what changed where.
    """
    with tracecal.Monitors(calibrator, state, **options) as monitors:
        monitors.watch(answers, task=task, reading=reading)
        if labels:
            monitors.judge(labels, reading=reading)
        print(printable(monitors.summary()))
        if monitors.alarms:
            raise typer.Exit(ALARM)
