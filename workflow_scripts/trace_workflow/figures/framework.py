"""The framework figure: from question and decoded answer to TRACE and TRACE+, by an example.

Four panels from left to right, placed in inches: the answer, its trace, the operators of local risk
and the confidence.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.figures.drawable_text import token_label, wrap
from trace_workflow.figures.framework_example import FrameworkExample, read_example
from trace_workflow.tables.table import format_number
from tracecal.features.operators import ALPHA, BETA, DECAY, GAMMA, WINDOW, window_start
from tracecal.pages import figure_style as style

HEIGHT = 3.3
SURPRISAL, ENTROPY = style.FAMILIES["likelihood"].color, style.FAMILIES["entropy"].color
PEAK, WRONG = style.LOCAL_PEAK.color, style.TRACE_PLUS.color
# Panels from left to right: left edge and width.
ANSWER, SIGNALS, RISK, SCORE = (0.03, 1.22), (1.45, 1.06), (2.73, 1.84), (4.8, 1.48)
TOP, BOTTOM = HEIGHT - 0.27, 0.06
MIDDLE = (TOP + BOTTOM) / 2
LINE = 0.15
MAX_LABELS = 7  # tokens of an answer up to which each has room for a label
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
        page = _add_axes(figure, 0, 0, style.TEXT_WIDTH, HEIGHT)
        page.set(xlim=(0, style.TEXT_WIDTH), ylim=(0, HEIGHT))
        panels = (ANSWER, SIGNALS, RISK, SCORE)
        answer = "A correct answer" if example.correct else "A wrong answer"
        names = (answer, "Its trace", "Local risk operators", "Confidence")
        for letter, name, (x, _) in zip("abcd", names, panels, strict=True):
            _write(page, x, HEIGHT - 0.06, f"({letter}) {name}", bold=True)
        for (x, width), (following, _) in pairwise(panels[:3]):
            _draw_arrow(page, x + width, following, MIDDLE - 0.4, style.MUTED)  # clear of titles
        _draw_answer(page, example)
        _draw_trace(figure, example)
        _draw_operators(figure, page, example)
        _draw_scores(page, example)
    return figure


def peak_window(entropy: Sequence[float]) -> tuple[int, int]:
    """The first token of the window with the highest mean entropy, and one past its last.

    >>> peak_window([0.0, 0.1, 2.0, 2.0, 2.0, 2.0])
    (2, 6)
    """
    frame = pl.DataFrame({"entropy": [list(entropy)]})
    first = int(frame.select(window_start(pl.col("entropy"), WINDOW)).item())
    return first, first + min(WINDOW, len(entropy))


def _draw_answer(page: Axes, example: FrameworkExample) -> None:
    x, width = ANSWER
    x, inside = x + 0.07, width - 0.14
    mean_probability = float(np.mean(np.exp(-np.asarray(example.surprisal, dtype=float))))
    question = "(On a passage) " * example.passage + example.question
    verdict = "✓ correct" if example.correct else f"✗ wrong: it is {example.references[0]}"
    # `wrap` measures regular type, and bold type is wider.
    verdict = wrap(page.figure, verdict, 0.86 * inside, 2)
    note = f"mean probability of its tokens {_format(mean_probability)}"
    below = BOTTOM + 0.06 + 2 * LINE
    color = style.INK if example.correct else WRONG
    note = wrap(page.figure, note, inside, 2)
    _write(page, x, BOTTOM + 0.06, note, color=style.MUTED, va="bottom")
    _write(page, x, below, verdict, color=color, bold=True, va="bottom")
    for low, title, text, n_lines in (
        (MIDDLE + 0.05, "Question", question, 6),
        (BOTTOM, "Answer", example.answer, 4 - verdict.count("\n")),
    ):
        _draw_box(page, ANSWER[0], low, width, TOP - MIDDLE - 0.05)
        top = low + TOP - MIDDLE - 0.12
        _write(page, x, top, title, bold=True)
        wrapped = wrap(page.figure, text, inside, n_lines)
        _write(page, x, top - LINE - 0.02, wrapped or "(no text)")


def _draw_trace(figure: Figure, example: FrameworkExample) -> None:
    x, width = SIGNALS[0] + 0.2, SIGNALS[1] - 0.2
    with_labels = len(example.tokens) <= MAX_LABELS
    base, space = BOTTOM + (0.78 if with_labels else 0.34), 0.26
    height = (TOP - base - space) / 2 - 0.06
    for low, values, color, title in (
        (base + height + space, example.entropy, ENTROPY, "entropy H, nats"),
        (base, example.surprisal, SURPRISAL, "surprisal s, nats"),
    ):
        axes = _add_axes(figure, x, low, width, height)
        _draw_bars(axes, values, color)
        _shade_peak(axes, example.entropy)
        axes.set_title(title, fontsize=style.SMALL, fontweight="normal", color=style.INK, pad=2)
        axes.spines[["left", "bottom"]].set_visible(True)
        highest = max(max(values), 1e-3)
        axes.set_yticks([0, highest], ["0", format_number(float(highest), 1)])
    if with_labels:
        labels = [token_label(token) for token in example.tokens]
        axes.set_xticks(range(1, len(labels) + 1), labels, rotation=90)
    else:
        axes.set_xticks([1, len(example.tokens)])
        axes.set_xlabel("token t", fontsize=style.SMALL, labelpad=-4)
    axes.tick_params(axis="x", length=0, pad=1.5)


def _draw_operators(figure: Figure, page: Axes, example: FrameworkExample) -> None:
    features, entropy = example.features, np.asarray(example.entropy, dtype=float)
    values = {name: _format(value) for name, value in features.items()}
    first_tokens = _format(-np.log(features["first3_entropy_conf"]))
    both = (style.TRACE, style.TRACE_PLUS)
    # Name, values, what is drawn on the entropies, and the estimators that use the operator.
    rows = (
        (
            "Early / global",
            f"first 3 tokens: {first_tokens}\nall tokens: {values['mean_entropy']}",
            _draw_global,
            (style.TRACE_PLUS,),
        ),
        (
            "Position-decayed",
            f"D(H) = {values['decayed_entropy']}\nweight exp(−(t−1)/{DECAY:g})",
            _draw_decay,
            both,
        ),
        (
            "Local peak",
            f"M(H) = {values['window_entropy']}\nhighest {WINDOW} tokens",
            _shade_peak,
            (style.TRACE,),
        ),
        (
            "Shape / length",
            f"slope {values['entropy_slope']}, T = {features['length']:.0f}\n"
            f"L(s) = {values['length_normalised_surprisal']}",
            _draw_slope,
            both,
        ),
    )
    x, width = RISK
    step = (TOP - BOTTOM) / len(rows)
    for index, (name, text, draw_overlay, looks) in enumerate(rows):
        low = TOP - (index + 1) * step + 0.04
        _draw_box(page, x, low, width, step - 0.04)
        axes = _add_axes(figure, x + 0.06, low + 0.07, 0.4, step - 0.18)
        _draw_bars(axes, entropy, ENTROPY)
        draw_overlay(axes, entropy)
        top = low + step - 0.1
        _write(page, x + 0.53, top, name, bold=True)
        _write(page, x + 0.53, top - LINE, text)
        for column, look in enumerate(looks):
            marker_x = x + width - 0.15 + 0.1 * column
            page.plot(marker_x, top - 0.05, mew=0, **style.point(look))


def _draw_scores(page: Axes, example: FrameworkExample) -> None:
    x, width = SCORE
    risk = float(example.features["trace_risk"])
    has_probability = example.probability is not None
    probability = (
        f"probability {_format(example.probability)}" if has_probability else "probability"
    )
    height = TOP - MIDDLE - 0.02
    for low, look, title, text, result in (
        (
            MIDDLE + 0.02,
            style.TRACE,
            "TRACE",
            f"risk R =\n{ALPHA:g} D + {BETA:g} M + {GAMMA:g} L\n= {_format(risk)}",
            f"exp(−R) = {_format(np.exp(-risk))}\nneeds no labels",
        ),
        (
            BOTTOM,
            style.TRACE_PLUS,
            "TRACE+",
            "features standardised,\nlogistic regression on\nlabelled answers",
            f"{probability}\nof being correct",
        ),
    ):
        _draw_box(page, x, low, width, height, edge=look.color)
        _draw_arrow(page, sum(RISK), x, low + height / 2, look.color)
        top = low + height - 0.07
        page.plot(x + 0.1, top - 0.05, mew=0, **style.point(look))
        _write(page, x + 0.18, top, title, color=look.text, bold=True)
        _write(page, x + 0.07, top - LINE - 0.04, text)
        _write(page, x + 0.07, low + 0.07, result, color=look.text, bold=True, va="bottom")


def _draw_global(axes: Axes, entropy: np.ndarray) -> None:
    end = min(3, len(entropy)) + 0.5
    axes.axvspan(0.5, end, color=style.INK, alpha=0.12, lw=0, zorder=1)
    axes.axhline(entropy.mean(), color=style.INK, lw=0.9, zorder=3)


def _draw_decay(axes: Axes, entropy: np.ndarray) -> None:
    t = np.linspace(1, len(entropy), 100)
    weight = np.exp(-(t - 1) / DECAY)
    axes.plot(t, weight * axes.get_ylim()[1], color=style.INK, lw=0.9, zorder=3)


def _draw_slope(axes: Axes, entropy: np.ndarray) -> None:
    t = np.arange(1, len(entropy) + 1)
    line = np.polynomial.Polynomial.fit(t, entropy, 1)(t) if len(t) > 1 else entropy
    axes.plot(t, line, color=style.INK, lw=0.9, zorder=3)


def _shade_peak(axes: Axes, entropy: Sequence[float]) -> None:
    first, end = peak_window(entropy)
    axes.axvspan(first + 0.5, end + 0.5, color=PEAK, alpha=0.22, lw=0, zorder=1)


def _draw_bars(axes: Axes, values: Sequence[float], color: str) -> None:
    axes.bar(range(1, len(values) + 1), values, width=0.8, color=color, zorder=2)
    axes.set_xlim(0.4, len(values) + 0.6)
    axes.set_ylim(min(0, *values), max(*values, 1e-3) * 1.08)


def _draw_box(
    page: Axes, x: float, low: float, width: float, height: float, edge: str = style.FAINT
) -> None:
    rounded = "round,pad=0,rounding_size=0.05"
    page.add_patch(
        FancyBboxPatch((x, low), width, height, boxstyle=rounded, fc="white", ec=edge, lw=0.8)
    )


def _draw_arrow(page: Axes, start: float, end: float, y: float, color: str) -> None:
    line = {"arrowstyle": "-|>", "color": color, "lw": 0.9, "shrinkA": 1.5, "shrinkB": 1.5}
    page.annotate("", (end, y), (start, y), arrowprops=line | {"mutation_scale": 7})


def _write(
    page: Axes,
    x: float,
    y: float,
    text: str,
    *,
    color: str = style.INK,
    bold: bool = False,
    va: str = "top",
) -> None:
    weight = "bold" if bold else "normal"
    page.text(
        x, y, text, fontsize=style.SMALL, color=color, fontweight=weight, va=va, linespacing=1.25
    )


def _add_axes(figure: Figure, x: float, low: float, width: float, height: float) -> Axes:
    """Bare axes at a place in inches."""
    corners = np.array([x, low, width, height])
    size = np.array([style.TEXT_WIDTH, HEIGHT] * 2)
    axes = figure.add_axes(tuple(corners / size))
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.patch.set_alpha(0)
    return axes


def _format(value: float) -> str:
    return format_number(float(value), 2)
