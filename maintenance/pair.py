"""Two short answers of a run side by side: the most trusted right one, the least trusted wrong one.

`make pictures` draws them for README, from the answers of the headline's model and task.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from trace_workflow.analyses.explorer_answers import read_explorer_answers
from trace_workflow.figures import figure_style
from tracecal.errors import InputError

ESTIMATOR = "trace_plus"
MAX_TOKENS = 6  # of an answer with its stop token
DARKEST = 4.0  # surprisal in nats of the darkest token
TITLE = "One answer trusted, one doubted"
NOTE = "below each token its surprisal, then the probability of being right"
WIDTH, HEIGHT, MARGIN = 3.9, 1.95, 0.05  # inches
CAPTION = "Each token of two answers with its surprisal, and the probability that each is right."


def picture(run: Path, model: str, task: str) -> bytes:
    """The picture as SVG. Raises `InputError` where the run has no such answers."""
    with figure_style.applied(), TemporaryDirectory() as folder:
        target = Path(folder) / "pair.svg"
        figure = draw(*choose(read_answers(run, model, task)))
        figure_style.save(figure, target.with_suffix(".pdf"), target, "Two answers", CAPTION)
        return target.read_bytes()


def read_answers(run: Path, model: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a pair, with the mean `probability` over the splits."""
    files = {
        name: str(run / name / model / f"{task}.parquet")
        for name in ("labels", "scores", "predictions")
    }
    files["traces"] = str(run / "traces" / model / f"{task}.arrow")
    files["tasks"] = str(run / "tasks" / f"{task}.parquet")
    answers = read_explorer_answers(files, [ESTIMATOR])
    return answers.rename({f"probability.{ESTIMATOR}": "probability"})


def choose(answers: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    """The right answer of highest and the wrong one of lowest probability, among short ones."""
    short = answers.filter(pl.col("tokens").list.len() <= MAX_TOKENS).drop_nulls("probability")
    ranked = short.sort("probability", "example_id")
    right, wrong = ranked.filter("correct").tail(1), ranked.filter(~pl.col("correct")).head(1)
    if not (right.height and wrong.height):
        raise InputError(f"no answer of up to {MAX_TOKENS} tokens is right, or none is wrong")
    return right.row(0, named=True), wrong.row(0, named=True)


def draw(right: Mapping[str, Any], wrong: Mapping[str, Any]) -> Figure:
    """Two cards side by side, 8 points and more where the figure is as wide as a telephone."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.set_layout_engine("none")
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
    page.set_axis_off()
    _write(page, MARGIN, HEIGHT - 0.06, TITLE, figure_style.LARGE, fontweight="bold", va="top")
    for left, answer in zip((MARGIN, (WIDTH + MARGIN) / 2), (right, wrong), strict=True):
        _draw_card(page, left, answer)
    _write(page, MARGIN, 0.07, NOTE, figure_style.SMALL, color=figure_style.MUTED)
    return figure


def _draw_card(page: Axes, left: float, answer: Mapping[str, Any]) -> None:
    question = answer["question"].replace(" is ", " is\n", 1)
    _write(page, left, 1.5, question, figure_style.NORMAL, va="top", linespacing=1.2)
    across = left
    # The last token ends the answer and has no text.
    for token, surprisal in zip(answer["tokens"][:-1], answer["surprisal"][:-1], strict=True):
        text = token.strip()
        width = 0.12 + 0.105 * len(text)
        shade = min(surprisal / DARKEST, 1.0)
        box = FancyBboxPatch(
            (across, 0.8),
            width,
            0.27,
            boxstyle="round,pad=0,rounding_size=0.03",
            facecolor=(figure_style.TRACE.color, 0.08 + 0.62 * shade),
            edgecolor="none",
        )
        page.add_patch(box)
        middle = {"x": across + width / 2, "ha": "center"}
        _write(page, y=0.935, text=text, size=figure_style.LARGE, va="center_baseline", **middle)
        number = f"{surprisal:.1f}"
        muted = figure_style.MUTED
        _write(page, y=0.62, text=number, size=figure_style.SMALL, color=muted, **middle)
        across += width + 0.04
    verdict, color = (
        ("right", figure_style.RIGHT) if answer["correct"] else ("wrong", figure_style.WRONG)
    )
    mark = "✓" if answer["correct"] else "✗"
    judged = f"{mark} {verdict}, {answer['probability']:.2f}"
    _write(page, left, 0.34, judged, figure_style.LARGE, color=color, fontweight="bold")


def _write(page: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    page.text(x, y, text, fontsize=size, **look)
