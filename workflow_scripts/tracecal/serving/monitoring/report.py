"""A page of the monitors' evidence: what `tracecal watch --report FILE.html` writes."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tracecal.calibrator.predictor import Predictor
from tracecal.pages.page import render_page
from tracecal.serving.monitoring.database import StateDatabase
from tracecal.serving.monitoring.messages import (
    alarm_sentences,
    dependence_warning,
    long_name,
    watched_sentence,
)
from tracecal.serving.monitoring.state import ERROR_MONITOR, State

TEMPLATE = Path(__file__).with_name("report.html")
MAX_POINTS = 200  # of a picture
WIDTH, HEIGHT = 300, 130  # of a picture, in its own units
LEFT, TOP, BOTTOM = 40, 8, 22  # margins
# The last evidence of each of MAX_POINTS stretches of answers.
EVIDENCE = """
SELECT max(place), evidence FROM history
GROUP BY (place - (SELECT min(place) FROM history)) * ? /
    (SELECT max(place) - min(place) + 1 FROM history) ORDER BY 1"""


class EvidencePicture(NamedTuple):
    """One monitor's evidence over the answers, on a logarithmic scale.

    `evidence` is what there is now, and `limit` where the alarm is raised. `points` of the line,
    `limit_y` of the alarm line and `ticks` of the scale are as SVG takes them.
    """

    title: str
    evidence: float
    limit: float
    points: str
    limit_y: float
    ticks: list[tuple[float, str]]
    is_alarm: bool


def page(database: StateDatabase, predictor: Predictor) -> str:
    """Draw each monitor's evidence and alarm line as a self-contained page of HTML."""
    state = database.state
    history = with_start(state, database.query(EVIDENCE, (MAX_POINTS,)))
    return render_page(
        TEMPLATE,
        "Evidence of the monitors",
        alarms=list(alarm_sentences(state)),
        warning=dependence_warning(database),
        undecided=undecided_sentence(database, predictor),
        watched=watched_sentence(state),
        settings=state.settings,
        pictures=pictures(state, history),
        n_first=history[0][0] if history else 0,
        n_last=history[-1][0] if history else 0,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bottom=HEIGHT - BOTTOM,
    )


def undecided_sentence(database: StateDatabase, predictor: Predictor) -> str | None:
    """Say that no answer has a decision, though an error rate was asked for; else None."""
    counts, state = database.counts(), database.state
    error_rate = state.settings.error_rate
    if error_rate is None or counts["decided"] or not state.n_answers:
        return None
    reason = predictor.why_not(error_rate)
    if counts["unknown"] == state.n_answers:
        reason = "none has a probability, so that the server may give no log-probabilities"
    sentence = (
        f"No answer has a decision, {state.n_answers:,} of {state.n_answers:,}: calibrate on "
        "answers like these"
    )
    return f"{sentence} ({reason})." if reason else f"{sentence}."


def with_start(state: State, history: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """`history` with the evidence before the first answer, 1, where it has a single point.

    One point draws no line.
    """
    if len(history) != 1:
        return list(history)
    names = ["labels" if name == ERROR_MONITOR else name for name in state.all_monitors]
    return [(0, json.dumps(dict.fromkeys(names, 1.0))), *history]


def pictures(state: State, history: Sequence[tuple[int, str]]) -> list[EvidencePicture]:
    """Draw each monitor's evidence; `history` pairs numbers of answers with evidence as JSON."""
    rows = [(number, json.loads(evidence)) for number, evidence in history]
    evidence_pictures = []
    for name, monitor in state.all_monitors.items():
        is_of_errors = name == ERROR_MONITOR
        if is_of_errors and state.settings.error_rate is None:
            continue
        key = "labels" if is_of_errors else name
        limit = state.limit_of(name)
        top = 10 * limit
        line = [(number, _height(evidence[key], top)) for number, evidence in rows]
        evidence_pictures.append(
            EvidencePicture(
                title=long_name(name).capitalize(),
                evidence=monitor.evidence,
                limit=limit,
                points=_points(line),
                limit_y=_height(limit, top),
                ticks=[(_height(value, top), f"{value:,g}") for value in _decades(limit)],
                is_alarm=monitor.alarm is not None,
            )
        )
    return evidence_pictures


def _decades(limit: float) -> list[float]:
    """Return up to four powers of ten from 1 to the limit."""
    n_decades = max(int(math.log10(limit)), 1)
    step = math.ceil(n_decades / 3)
    return [10.0**exponent for exponent in range(0, n_decades + 1, step)]


def _height(evidence: float, top: float) -> float:
    """Return where evidence is drawn, between 1 at the bottom and `top`."""
    share = math.log(min(max(evidence, 1.0), top)) / math.log(top)
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _points(line: Sequence[tuple[int, float]]) -> str:
    """Return a line's points, answers across and heights down."""
    if not line:
        return ""
    first, span = line[0][0], max(line[-1][0] - line[0][0], 1)
    across = ((LEFT + (WIDTH - LEFT) * (number - first) / span, height) for number, height in line)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in across)
