"""How many labels a promise needs, as a table, a picture and a sentence."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment, StrictUndefined

from tracecal.calibrate.evidence import Part
from tracecal.calibrate.promised import (
    AtHand,
    Guessed,
    Population,
    doubled,
    needed,
    sentence,
    simulated,
    suffices,
    summarised,
)
from tracecal.config.calibration import Splits
from tracecal.errors import InputError
from tracecal.toolkit.fitted import default_estimator, stored_in

FEWEST = 50
# Of the sentence in a calibrator's report, which should not keep one waiting.
FEW_DRAWS, TIMES = 20, 8

PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 270"
  font-family="sans-serif" font-size="12">
<title>{{ title }}</title>
<rect width="480" height="270" fill="#fff"/>
<text x="50" y="18">{{ title }}</text>
{% for share in (0, 25, 50, 75, 100) -%}
<line x1="50" x2="465" y1="{{ up(share / 100) }}" y2="{{ up(share / 100) }}" stroke="#ddd"/>
<text x="44" y="{{ up(share / 100) + 4 }}" text-anchor="end">{{ share }} %</text>
{% endfor -%}
<polygon points="{{ band }}" fill="#2F5D8A" fill-opacity=".2"/>
<polyline points="{{ line }}" fill="none" stroke="#2F5D8A" stroke-width="2"/>
{% for row in rows -%}
<circle cx="{{ across(row.questions) }}" cy="{{ up(row.median) }}" r="3" fill="#2F5D8A"/>
<text x="{{ across(row.questions) }}" y="240" text-anchor="middle">{{ row.questions }}</text>
{% endfor -%}
<text x="257" y="260" text-anchor="middle">labelled questions</text>
</svg>
"""


def population(
    calibrator: str | None, accuracy: float | None, auroc: float | None
) -> tuple[Population, float]:
    """Where labelled questions come from, and the share of them that calibrates.

    Raises `InputError` unless there is either a calibrator with held-out probabilities or both
    guesses.
    """
    guesses = accuracy is not None and auroc is not None
    if (calibrator is None) != guesses or (calibrator and (accuracy, auroc) != (None, None)):
        raise InputError("give either --calibrator, or --accuracy and --auroc as guesses.")
    if calibrator is None:
        return Guessed(accuracy, auroc), Splits().calibration_share
    stored = stored_in(calibrator)
    return at_hand(stored, calibrator), Splits().calibration_share


def at_hand(stored: Mapping[str, Any], where: str) -> AtHand:
    """The labelled answers of a calibrator. Raises `InputError` where its file lacks them."""
    held = stored[default_estimator(stored)].get("held_out")
    if held is None:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    return AtHand(
        Part(
            np.array(held["group"]),
            np.array(held["probability"], dtype=float),
            np.array(held["correct"], dtype=bool),
        )
    )


def planned(
    population: Population,
    share: float,
    error_rate: float,
    confidence: float,
    most: int,
    draws: int,
    seed: int,
) -> pl.DataFrame:
    """`promised.summarised` for numbers of labelled questions up to `most`.

    Raises `InputError` for settings out of range.
    """
    for name, value in (("--error-rate", error_rate), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise InputError(f"{name} {value:g}: expected a number between 0 and 1.")
    if most < FEWEST or draws < 1:
        raise InputError(f"--most must be {FEWEST} or more, and --draws 1 or more.")
    sizes = doubled(FEWEST, most)
    return summarised(simulated(population, sizes, draws, error_rate, confidence, share, seed))


def printed(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The table and what is needed, for a terminal."""
    lines = [
        f"At most {error_rate:.0%} incorrect, with confidence {confidence:g}:",
        f"{'labelled questions':>18}{'promised in':>13}{'share kept, median':>20}"
        f"{'80 % of draws':>16}",
    ]
    lines += [
        f"{row['questions']:>18,}{row['promised']:>13.0%}{row['median']:>20.0%}{_ends(row):>16}"
        for row in table.iter_rows(named=True)
    ]
    row = next(filter(suffices, table.iter_rows(named=True)), None)
    return "\n".join([*lines, "", sentence(row, error_rate, table["questions"].max())])


def _ends(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.0%} to {row['high']:.0%}"


def picture(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The share kept against the number of labelled questions, as SVG: median and 80 % of draws."""
    rows = table.to_dicts()
    least, most = math.log(rows[0]["questions"]), math.log(rows[-1]["questions"])

    def across(questions: int) -> float:
        return round(60 + 395 * (math.log(questions) - least) / max(most - least, 1e-9), 1)

    def up(share: float) -> float:
        return round(222 - 190 * share, 1)

    def points(column: str) -> list[str]:
        return [f"{across(row['questions'])},{up(row[column])}" for row in rows]

    title = f"Answers kept with at most {error_rate:.0%} incorrect ({confidence:.0%} confidence)"
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(PICTURE).render(
        title=title,
        rows=rows,
        across=across,
        up=up,
        line=" ".join(points("median")),
        band=" ".join([*points("high"), *reversed(points("low"))]),
    )


def outlook(
    stored: Mapping[str, Any], certified: pl.DataFrame, share: float, seed: int
) -> str | None:
    """What the largest error rate that could not be promised needs; null where all could be.

    `certified` are `report.guarantees` of the default estimator.
    """
    missing = certified.filter(pl.col("threshold").is_null())["error_rate"].to_list()
    if not missing:
        return None
    rate, at = max(missing), at_hand(stored, "the calibrator")
    confidence = stored[default_estimator(stored)]["risk_control"]["confidence"]
    questions = at.part.groups
    settings = {"error_rate": rate, "confidence": confidence, "share": share, "seed": seed}
    row, tried = needed(at, questions, TIMES * questions, draws=FEW_DRAWS, **settings)
    return sentence(row, rate, tried)
