"""The commands that are a function of the API as it is: `pick`, `agree`, `explore` and `replay`."""

from typing import Any

import tracecal
from tracecal.cli.command import command, require_installed
from tracecal.io.log import LOGGER, printable


@command(
    "choose answers to label",
    "tracecal pick --answers all.jsonl --number 200 --output pick.jsonl",
    options_of="pick",
)
def pick(*, answers: str, number: int, output: str, **options: Any) -> None:
    rows = tracecal.pick(answers, number, output=output, **options)
    LOGGER.info("%s holds %d answers; label them from the first on", output, rows.height)


@command(
    "know how far two people's labels agree",
    "tracecal agree a.labelled.jsonl b.labelled.jsonl",
    options_of="agree",
    arguments=["answers", "second"],
)
def agree(**options: Any) -> None:
    print(printable(f"{tracecal.agree(**options)}"))


@command(
    "look at answers and their confidence",
    "tracecal explore --answers log.jsonl --calibrator C.json --output answers.html",
    options_of="explore",
    endings={"output": (".html",)},
    panels={"What is shown": ("number", "seed", "parts")},
)
def explore(**options: Any) -> None:
    tracecal.explore(**options)


@command(
    "compute exact log-probabilities of answers that lack them",
    "tracecal replay --answers samples_svamp.jsonl --weights path/to/model --output replayed.arrow",
    options_of="replay",
    endings={"output": (".arrow",)},
    panels={"The model": ("revision", "dtype", "batch_size")},
)
def replay(*, answers: str, weights: str, output: str, **options: Any) -> None:
    require_installed("'tracecal replay'", "replay", "torch", "transformers", "safetensors")
    tracecal.replay(answers, weights, output=output, **options)
