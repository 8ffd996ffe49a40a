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

from trace_workflow.analyses.explorer_answers import AnswerFiles, read_explorer_answers
from tracecal.errors import InputError
from tracecal.pages import figure_style

ESTIMATOR = "trace_plus"
MAX_TOKENS = 6  # of an answer with its stop token
DARKEST = 4.0  # surprisal in nats of the darkest token
NOTE = "below each token: its surprisal in nats, 0 where the model is certain"
RIGHT, WRONG = "#1F7A6C", "#AE1E1E"
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
    path = {
        name: str(run / name / model / f"{task}.parquet")
        for name in ("labels", "scores", "predictions")
    }
    traces, rows = run / "traces" / model / f"{task}.arrow", run / "tasks" / f"{task}.parquet"
    files = AnswerFiles(traces=str(traces), task=str(rows), **path)
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
    """Two cards."""
    figure = Figure(figsize=(4.6, 1.85))
    for axes, answer in zip(figure.subplots(1, 2), (right, wrong), strict=True):
        _draw_card(axes, answer)
    figure.supxlabel(NOTE, x=0.01, ha="left", fontsize=7, color=figure_style.MUTED)
    return figure


def _draw_card(axes: Axes, answer: Mapping[str, Any]) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    question = answer["question"].replace(" is ", " is\n", 1)
    axes.text(0, 1, question, va="top", fontsize=figure_style.SMALL)
    across = 0.0
    # The last token ends the answer and has no text.
    for token, surprisal in zip(answer["tokens"][:-1], answer["surprisal"][:-1], strict=True):
        text = token.strip()
        width = 0.055 + 0.052 * len(text)
        shade = min(surprisal / DARKEST, 1.0)
        box = FancyBboxPatch(
            (across, 0.4),
            width,
            0.24,
            boxstyle="round,pad=0,rounding_size=0.02",
            facecolor=(figure_style.TRACE.color, 0.08 + 0.62 * shade),
            edgecolor="none",
        )
        axes.add_patch(box)
        middle = across + width / 2
        center = {"ha": "center", "va": "center"}
        axes.text(middle, 0.52, text, fontsize=figure_style.LARGE, **center)
        axes.text(middle, 0.3, f"{surprisal:.1f}", fontsize=7, color=figure_style.MUTED, **center)
        across += width + 0.02
    verdict, color = ("right", RIGHT) if answer["correct"] else ("wrong", WRONG)
    mark = "✓" if answer["correct"] else "✗"
    axes.text(
        0,
        0.02,
        f"{mark} {verdict}, probability {answer['probability']:.2f}",
        fontsize=figure_style.NORMAL,
        fontweight="bold",
        color=color,
    )
