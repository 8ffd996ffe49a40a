"""The framework figure: from question and decoded answer to TRACE and TRACE+, by an example.

Four columns, placed in inches: the answer, its trace, the operators and the confidence.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.figures import figure_style as style
from trace_workflow.figures.drawable_text import token_label, wrap
from trace_workflow.figures.framework_example import FrameworkExample, read_example
from trace_workflow.tables.table import format_number
from tracecal.estimators.features import ALPHA, BETA, DECAY, GAMMA, WINDOW
from tracecal.estimators.operators import window_start

HEIGHT, TOP, BOTTOM = 3.3, 3.06, 0.06
LEFT, WIDTH = (0.03, 1.5, 3.16, 4.8), (1.22, 1.46, 1.46, 1.48)  # of the columns
INSET = 0.07  # of the texts in a box
MAX_LABELS = 9  # tokens of an answer up to which each has room for a label
NOTHING = "No answer in the main study has the entropies that TRACE needs."


def draw(pairs: Sequence[Sequence[str]], **paths: Sequence[str]) -> Figure:
    """The figure of the example in the files of these pairs."""
    return draw_framework(read_example(StudyFiles(paths, pairs)))


def draw_framework(example: FrameworkExample | None) -> Figure:
    """The figure; without an example, a sentence that says why there is none."""
    with style.applied():
        if example is None:
            return style.sentence(NOTHING, style.TEXT_WIDTH, HEIGHT)
        figure = Figure(figsize=(style.TEXT_WIDTH, HEIGHT))
        figure.set_layout_engine("none")
        page = figure.add_axes((0, 0, 1, 1), frame_on=False, xticks=[], yticks=[])
        page.set(xlim=(0, style.TEXT_WIDTH), ylim=(0, HEIGHT))
        answer = "A correct answer" if example.correct else "A wrong answer"
        titles = (answer, "Its trace", "Local risk operators", "Confidence")
        for letter, title, x in zip("abcd", titles, LEFT, strict=True):
            _write(page, x, HEIGHT - 0.06, f"({letter}) {title}", fontweight="bold")
        arrow = {"arrowstyle": "-|>", "color": style.MUTED}
        for x, width, end in zip(LEFT, WIDTH, LEFT[1:], strict=False):
            page.annotate("", (end, 1.13), (x + width, 1.13), arrowprops=arrow)
        _draw_boxes(page, example)
        _draw_trace(figure, example)
    return figure


def peak_window(entropy: Sequence[float]) -> tuple[int, int]:
    """The first token of the window with the highest mean entropy, and one past its last.

    >>> peak_window([0.0, 0.1, 2.0, 2.0, 2.0, 2.0])
    (2, 6)
    """
    frame = pl.DataFrame({"entropy": [list(entropy)]})
    first = int(frame.select(window_start(pl.col("entropy"), WINDOW)).item())
    return first, first + min(WINDOW, len(entropy))


def _draw_boxes(page: Axes, example: FrameworkExample) -> None:
    def wrapped(text: str, n_lines: int, share: float = 1.0) -> str:
        return wrap(page.figure, text, share * (WIDTH[0] - 2 * INSET), n_lines) or "(no text)"

    values = {name: format_number(value, 2) for name, value in example.features.items()}
    first3 = format_number(-np.log(example.features["first3_entropy_conf"]), 2)
    mean = np.exp(-np.asarray(example.surprisal, dtype=float)).mean()
    mean_text = wrapped(f"mean probability of its tokens {mean:.2f}", 2)
    verdict = "✓ correct" if example.correct else f"✗ wrong: it is {example.references[0]}"
    verdict = wrapped(verdict, 2, share=0.86)  # `wrap` measures regular type; bold type is wider
    answer = f"{wrapped(example.answer, 3)}\n\n{mean_text}"
    probability = "" if example.probability is None else f" {example.probability:.2f}"
    trace, plus = style.TRACE, style.TRACE_PLUS
    color = style.INK if example.correct else plus.text
    question = wrapped("(On a passage) " * example.passage + example.question, 7)
    _draw_box(page, 0, (0, 2), "Question", question)
    _draw_box(page, 0, (1, 2), "Answer", answer, verdict, color)
    early = f"first 3 tokens: {first3}\nall tokens: {values['mean_entropy']}"
    decayed = f"D(H) = {values['decayed_entropy']}\nweight exp(−(t−1)/{DECAY:g})"
    peak = f"M(H) = {values['window_entropy']}\nhighest {WINDOW} tokens"
    shape = f"slope {values['entropy_slope']}, T = {example.features['length']:.0f}\n"
    shape += f"L(s) = {values['length_normalised_surprisal']}"
    _draw_box(page, 2, (0, 4), "Early / global", early, looks=[plus])
    _draw_box(page, 2, (1, 4), "Position-decayed", decayed, looks=[plus, trace])
    _draw_box(page, 2, (2, 4), "Local peak", peak, looks=[trace])
    _draw_box(page, 2, (3, 4), "Shape / length", shape, looks=[plus, trace])
    risk = f"risk R =\n{ALPHA:g} D + {BETA:g} M + {GAMMA:g} L\n= {values['trace_risk']}"
    score = f"exp(−R) = {np.exp(-example.features['trace_risk']):.2f}\nneeds no labels"
    _draw_box(page, 3, (0, 2), "TRACE", risk, score, trace.text, [trace])
    fit = "features standardised,\nlogistic regression on\nlabelled answers"
    result = f"probability{probability}\nof being correct"
    _draw_box(page, 3, (1, 2), "TRACE+", fit, result, plus.text, [plus])


def _draw_box(
    page: Axes,
    column: int,
    position: tuple[int, int],
    title: str,
    text: str,
    result: str = "",
    color: str = style.INK,
    looks: Sequence[style.Style] = (),
) -> None:
    """Draw a box in a column, at its `position` among so many; `looks` are of its estimators."""
    x, width, height = LEFT[column], WIDTH[column], (TOP - BOTTOM) / position[1]
    low = TOP - (position[0] + 1) * height
    edge = looks[0].color if result and looks else style.FAINT
    rounded = "round,pad=0,rounding_size=0.05"
    page.add_patch(FancyBboxPatch((x, low), width, height - 0.06, rounded, fc="white", ec=edge))
    top, title_color = low + height - 0.12, color if looks else style.INK
    _write(page, x + INSET, top, title, color=title_color, fontweight="bold")
    _write(page, x + INSET, top - 0.17, text)
    _write(page, x + INSET, low + INSET, result, color=color, fontweight="bold", va="bottom")
    for number, look in enumerate(looks):
        page.plot(x + width - 0.1 - 0.1 * number, top - 0.05, mew=0, **style.point(look))


def _draw_trace(figure: Figure, example: FrameworkExample) -> None:
    """Entropies and surprisals, with the local peak shaded."""
    t = np.arange(1, len(example.tokens) + 1)
    first, end = peak_window(example.entropy)
    for low, values, family, title in (
        (0.6, example.entropy, "entropy", "entropy H, nats"),
        (0.25, example.surprisal, "likelihood", "surprisal s, nats"),
    ):
        x, width = (LEFT[1] + 0.2) / style.TEXT_WIDTH, (WIDTH[1] - 0.25) / style.TEXT_WIDTH
        axes = figure.add_axes((x, low, width, 0.26), xlim=(0.4, len(t) + 0.6))
        axes.bar(t, values, color=style.FAMILIES[family].color, zorder=2)
        axes.axvspan(first + 0.5, end + 0.5, color=style.LOCAL_PEAK.color, alpha=0.22, lw=0)
        axes.set_title(title, fontsize=style.SMALL, fontweight="normal", pad=2)
        highest = float(max(*values, 1e-3))
        axes.set_ylim(0, 1.08 * highest)
        axes.set_yticks([0, highest], ["0", format_number(highest, 1)])
        axes.set_xticks([])
    if len(t) <= MAX_LABELS:
        axes.set_xticks(t, map(token_label, example.tokens), rotation=90)
    else:
        axes.set_xticks([1, len(t)])
        axes.set_xlabel("token t", fontsize=style.SMALL, labelpad=-4)
    axes.tick_params(axis="x", length=0, pad=1.5)


def _write(page: Axes, x: float, y: float, text: str, **look: str) -> None:
    page.text(x, y, text, **{"va": "top", "fontsize": style.SMALL, "linespacing": 1.25} | look)
