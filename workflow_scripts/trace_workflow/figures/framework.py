"""The framework figure: how TRACE scores one answer of the main study."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import FancyBboxPatch

from trace_workflow.analyses.study_files import KEYS, read_labels, read_pairs
from trace_workflow.tables.table import number
from tracecal.features.operators import ALPHA, BETA, DECAY, GAMMA, WINDOW, window_start
from tracecal.io.traces import read_traces
from tracecal.pages import figure_style

ELLIPSIS = "…"
NO_GLYPH = "□"


def legible(text: str) -> bool:
    """Whether the figures' font has a glyph for every character, white space aside."""
    return NO_GLYPH not in drawable(text)


def drawable(text: str) -> str:
    """`text` on one line, with empty boxes for characters that the figures' font has no glyph for.

    Control characters, line ends and runs of white space become a space.
    """
    printable = (character if character.isprintable() else " " for character in text)
    known = _characters()
    line = " ".join("".join(printable).split())
    return "".join(c if c == " " or ord(c) in known else NO_GLYPH for c in line)


def shown_token(token: str, length: int = 8) -> str:
    """A token as a label: a token of white space is made visible, a long one is cut."""
    text = drawable(token) or ("↵" if "\n" in token else "␣" if token else "∅")
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def wrapped(figure: Figure, text: str, width: float, lines: int) -> str:
    """`text` on at most `lines` lines of `width` inches in small type, cut where it is longer.

    Lines break at spaces, and within a word that is longer than a line.
    """
    left, shown = drawable(text), []
    while left and len(shown) < lines:
        count = _fitting(figure, left, width)
        space = left[: count + 1].rfind(" ")
        end = space if space > 0 and count < len(left) else count
        shown.append(left[:end].rstrip())
        left = left[end:].lstrip()
    if left:
        last = shown[-1]
        while last and _width(figure, last + ELLIPSIS) > width:
            last = last[:-1]
        shown[-1] = last.rstrip() + ELLIPSIS
    return "\n".join(shown)


def _fitting(figure: Figure, text: str, width: float) -> int:
    """How many characters fit on a line; at least one."""
    count = 1
    while count < len(text) and _width(figure, text[: count + 1]) <= width:
        count += 1
    return count


def _width(figure: Figure, text: str) -> float:
    probe = figure.text(0, 0, text, fontsize=figure_style.SMALL)
    extent = probe.get_window_extent()
    probe.remove()
    return extent.width / figure.dpi


@cache
def _characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=figure_style.FONTS[0]))).get_charmap())


# The answer of the main study that the framework figure shows as an example.


FEATURES = (
    "length",
    "first3_entropy_conf",
    "mean_entropy",
    "decayed_entropy",
    "window_entropy",
    "entropy_slope",
    "length_normalised_surprisal",
    "trace_risk",
)
TRACE = ["example_id", "answer", "tokens", "surprisal", "entropy"]
CONFIDENT = 0.5  # mean token probability from which an answer counts as confident


class Example(NamedTuple):
    """An answer, its trace (nats), its `FEATURES`, and TRACE+'s probability where there is one.

    `correct` is its label, `references` are the task's reference answers; with a `passage` the
    prompt holds more than the question.
    """

    question: str
    answer: str
    correct: bool
    references: Sequence[str]
    tokens: Sequence[str]
    surprisal: Sequence[float]
    entropy: Sequence[float]
    features: dict[str, float]
    probability: float | None
    passage: bool = False


def read_example(
    traces: Sequence[str],
    features: Sequence[str],
    labels: Sequence[str],
    predictions: Sequence[str],
    tasks: Sequence[str],
    pairs: Sequence[Sequence[str]],
) -> Example | None:
    """The confident error with the most pronounced peak; None where no answer has entropies.

    Each list of paths has one file per pair, in the order of `pairs`. Raises `InputError` where
    there is no pair.
    """
    # Answers from files may lack entropies.
    answers = read_pairs(features, pairs, ["example_id", *FEATURES]).drop_nulls("mean_entropy")
    if answers.is_empty():
        return None
    for more in (
        read_pairs(tasks, pairs, ["example_id", "question", "references", "context"]),
        read_pairs(traces, pairs, TRACE, read_traces),
        read_labels(labels, pairs),
    ):
        answers = answers.join(more, on=KEYS, validate="1:1")
    texts = answers.select(pl.col("question") + pl.col("answer")).to_series()
    answers = answers.with_columns(
        legible=pl.Series([legible(text) for text in texts]),
        mean_prob=pl.col("surprisal").list.eval((-pl.element()).exp()).list.mean(),
    )
    example = confident_error(answers)
    fitted = read_pairs(predictions, pairs, ["estimator", "example_id", "probability"])
    own = fitted.filter(estimator="trace_plus", **{name: example[name] for name in KEYS})
    return Example(
        *(example[name] for name in ("question", "answer", "correct", "references")),
        *(example[name] for name in ("tokens", "surprisal", "entropy")),
        {name: example[name] for name in FEATURES},
        own["probability"].mean(),
        example["context"] is not None,
    )


def confident_error(answers: pl.DataFrame) -> dict[str, object]:
    """The row of the wrong answer that is confident on average and has the highest peak.

    `answers`, at least one, holds `task`, `example_id`, `correct`, `mean_prob` (the mean of its
    tokens' probabilities), `window_entropy`, `mean_entropy` and `legible`. A correct, unsure
    or illegible answer is chosen only where there is no other. The peak is M_H^(4) - mean H, the
    spike gap; ties go to the first by task and id.
    """
    for kind in (pl.col("legible"), ~pl.col("correct"), pl.col("mean_prob") >= CONFIDENT):
        preferred = answers.filter(kind)
        answers = answers if preferred.is_empty() else preferred
    gap = pl.col("window_entropy") - pl.col("mean_entropy")
    return answers.sort(-gap, "task", "example_id").row(0, named=True)


# The framework figure: an example, from question and decoded answer to TRACE and TRACE+.


HEIGHT = 3.3
SURPRISAL, ENTROPY = (
    figure_style.FAMILIES["likelihood"].color,
    figure_style.FAMILIES["entropy"].color,
)
PEAK = figure_style.LOCAL_PEAK.color
WRONG = figure_style.TRACE_PLUS.color
# Panels from left to right: left edge and width, in inches.
ANSWER, SIGNALS, RISK, SCORE = (0.03, 1.22), (1.45, 1.06), (2.73, 1.84), (4.8, 1.48)
TOP, BOTTOM = HEIGHT - 0.27, 0.06
MIDDLE = (TOP + BOTTOM) / 2
LINE = 0.15
MOST_LABELS = 15  # tokens of an answer up to which each has a label
NOTHING = "No answer in the main study has the entropies that TRACE needs."


def draw(**files: Sequence) -> Figure:
    """The figure for the `read_example` of these `files`."""
    return framework(read_example(**files))


def framework(example: Example | None) -> Figure:
    """The figure; without an example, a sentence that says why there is none."""
    with figure_style.applied():
        if example is None:
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, HEIGHT)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, HEIGHT))
        figure.set_layout_engine("none")
        page = _panel(figure, 0, 0, figure_style.TEXT_WIDTH, HEIGHT)
        page.set(xlim=(0, figure_style.TEXT_WIDTH), ylim=(0, HEIGHT))
        panels = (ANSWER, SIGNALS, RISK, SCORE)
        answer = "A correct answer" if example.correct else "A wrong answer"
        names = (answer, "Its trace", "Local risk operators", "Confidence")
        for letter, name, (left, _) in zip("abcd", names, panels, strict=True):
            _write(page, left, HEIGHT - 0.06, f"({letter}) {name}", bold=True)
        for (left, width), (following, _) in pairwise(panels[:3]):
            _arrow(page, left + width, following, MIDDLE, figure_style.MUTED)
        _answer(page, example)
        _trace(figure, example)
        _operators(figure, page, example)
        _scores(page, example)
    return figure


def peak_window(entropy: Sequence[float]) -> tuple[int, int]:
    """The first token of the window with the highest mean entropy, and one past its last."""
    frame = pl.DataFrame({"entropy": [list(entropy)]})
    first = int(frame.select(window_start(pl.col("entropy"), WINDOW)).item())
    return first, first + min(WINDOW, len(entropy))


def _answer(page: Axes, example: Example) -> None:
    left, width = ANSWER
    left, inside = left + 0.07, width - 0.14
    sure = float(np.mean(np.exp(-np.asarray(example.surprisal, dtype=float))))
    question = "(On a passage) " * example.passage + example.question
    verdict = "✓ correct" if example.correct else f"✗ wrong: it is {example.references[0]}"
    # `wrapped` measures regular type, and bold type is wider.
    verdict = wrapped(page.figure, verdict, 0.86 * inside, lines=2)
    note = wrapped(page.figure, f"mean probability of its tokens {number(sure, 2)}", inside, 2)
    below = BOTTOM + 0.06 + 2 * LINE
    color = figure_style.INK if example.correct else WRONG
    _write(page, left, BOTTOM + 0.06, note, color=figure_style.MUTED, va="bottom")
    _write(page, left, below, verdict, color=color, bold=True, va="bottom")
    for low, title, text, lines in (
        (MIDDLE + 0.05, "Question", question, 6),
        (BOTTOM, "Answer", example.answer, 3 - verdict.count("\n")),
    ):
        _box(page, ANSWER[0], low, width, TOP - MIDDLE - 0.05)
        top = low + TOP - MIDDLE - 0.12
        _write(page, left, top, title, bold=True)
        shown = wrapped(page.figure, text, inside, lines)
        _write(page, left, top - LINE - 0.02, shown or "(no text)")


def _trace(figure: Figure, example: Example) -> None:
    left, width = SIGNALS[0] + 0.2, SIGNALS[1] - 0.2
    labels = len(example.tokens) <= MOST_LABELS
    base, space = BOTTOM + (0.78 if labels else 0.34), 0.26
    height = (TOP - base - space) / 2 - 0.06
    for low, values, color, title in (
        (base + height + space, example.entropy, ENTROPY, "entropy H, nats"),
        (base, example.surprisal, SURPRISAL, "surprisal s, nats"),
    ):
        axes = _panel(figure, left, low, width, height)
        _bars(axes, values, [color] * len(values))
        _shade(axes, example.entropy)
        axes.set_title(
            title, fontsize=figure_style.SMALL, fontweight="normal", color=figure_style.INK, pad=2
        )
        axes.spines[["left", "bottom"]].set_visible(True)
        highest = max(max(values), 1e-3)
        axes.set_yticks([0, highest], ["0", number(float(highest), 1)])
    positions = range(1, len(example.tokens) + 1)
    if labels:
        axes.set_xticks(positions, [shown_token(token) for token in example.tokens], rotation=90)
    else:
        axes.set_xticks([1, len(example.tokens)])
        axes.set_xlabel("token t", fontsize=figure_style.SMALL, labelpad=-4)
    axes.tick_params(axis="x", length=0, pad=1.5)


def _operators(figure: Figure, page: Axes, example: Example) -> None:
    f, entropy = example.features, np.asarray(example.entropy, dtype=float)
    early = -np.log(f["first3_entropy_conf"])
    rows = (
        (
            "Early / global",
            f"first 3 tokens: {_value(early)}\nall tokens: {_value(f['mean_entropy'])}",
            _draw_global,
            (figure_style.TRACE_PLUS,),
        ),
        (
            "Position-decayed",
            f"D(H) = {_value(f['decayed_entropy'])}\nweight exp(−(t−1)/{DECAY:g})",
            _draw_decay,
            (figure_style.TRACE, figure_style.TRACE_PLUS),
        ),
        (
            "Local peak",
            f"M(H) = {_value(f['window_entropy'])}\nhighest {WINDOW} tokens",
            _shade,
            (figure_style.TRACE,),
        ),
        (
            "Shape / length",
            f"slope {_value(f['entropy_slope'])}, T = {f['length']:.0f}\n"
            f"L(s) = {_value(f['length_normalised_surprisal'])}",
            _draw_slope,
            (figure_style.TRACE, figure_style.TRACE_PLUS),
        ),
    )
    left, width = RISK
    step = (TOP - BOTTOM) / len(rows)
    for index, (name, text, overlay, used_by) in enumerate(rows):
        low = TOP - (index + 1) * step + 0.04
        _box(page, left, low, width, step - 0.04)
        axes = _panel(figure, left + 0.06, low + 0.07, 0.4, step - 0.18)
        _bars(axes, entropy, [ENTROPY] * len(entropy))
        overlay(axes, entropy)
        top = low + step - 0.1
        _write(page, left + 0.53, top, name, bold=True)
        _write(page, left + 0.53, top - LINE, text)
        for place, look in enumerate(used_by):
            x = left + width - 0.18 + 0.1 * place
            page.plot(x, top - 0.05, mew=0, **figure_style.point(look))


def _draw_global(axes: Axes, entropy: np.ndarray) -> None:
    axes.axvspan(
        0.5, min(3, len(entropy)) + 0.5, color=figure_style.INK, alpha=0.12, lw=0, zorder=1
    )
    axes.axhline(entropy.mean(), color=figure_style.INK, lw=0.9, zorder=3)


def _draw_decay(axes: Axes, entropy: np.ndarray) -> None:
    t = np.linspace(1, len(entropy), 100)
    weight = np.exp(-(t - 1) / DECAY)
    axes.plot(t, weight * axes.get_ylim()[1], color=figure_style.INK, lw=0.9, zorder=3)


def _draw_slope(axes: Axes, entropy: np.ndarray) -> None:
    t = np.arange(1, len(entropy) + 1)
    fitted = np.polynomial.Polynomial.fit(t, entropy, 1)(t) if len(t) > 1 else entropy
    axes.plot(t, fitted, color=figure_style.INK, lw=0.9, zorder=3)


def _scores(page: Axes, example: Example) -> None:
    left, width = SCORE
    risk = float(example.features["trace_risk"])
    probability = example.probability
    shown = f"probability {number(probability, 2)}" if probability is not None else "probability"
    for low, look, title, text, result in (
        (
            MIDDLE + 0.02,
            figure_style.TRACE,
            "TRACE",
            f"risk R =\n{ALPHA:g} D + {BETA:g} M + {GAMMA:g} L\n= {_value(risk)}",
            f"exp(−R) = {number(float(np.exp(-risk)), 2)}\nneeds no labels",
        ),
        (
            BOTTOM,
            figure_style.TRACE_PLUS,
            "TRACE+",
            "features standardised,\nlogistic regression on\nlabelled answers",
            f"{shown}\nof being correct",
        ),
    ):
        height = TOP - MIDDLE - 0.02
        _box(page, left, low, width, height, edge=look.color)
        _arrow(page, sum(RISK), left, low + height / 2, look.color)
        top = low + height - 0.07
        page.plot(left + 0.1, top - 0.05, mew=0, **figure_style.point(look))
        _write(page, left + 0.18, top, title, color=look.text, bold=True)
        _write(page, left + 0.07, top - LINE - 0.04, text)
        _write(page, left + 0.07, low + 0.07, result, color=look.text, bold=True, va="bottom")


def _value(value: float) -> str:
    return number(float(value), 2)


def _panel(figure: Figure, left: float, low: float, width: float, height: float) -> Axes:
    axes = figure.add_axes(
        (
            left / figure_style.TEXT_WIDTH,
            low / HEIGHT,
            width / figure_style.TEXT_WIDTH,
            height / HEIGHT,
        )
    )
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.patch.set_alpha(0)
    return axes


def _bars(axes: Axes, values: Sequence[float], colors: Sequence) -> None:
    axes.bar(range(1, len(values) + 1), values, width=0.8, color=colors, zorder=2)
    axes.set_xlim(0.4, len(values) + 0.6)
    axes.set_ylim(min(0, *values), max(*values, 1e-3) * 1.08)


def _shade(axes: Axes, entropy: Sequence[float]) -> None:
    first, last = peak_window(entropy)
    axes.axvspan(first + 0.5, last + 0.5, color=PEAK, alpha=0.22, lw=0, zorder=1)


def _box(
    page: Axes, left: float, low: float, width: float, height: float, edge: str = figure_style.FAINT
) -> None:
    rounded = "round,pad=0,rounding_size=0.05"
    page.add_patch(
        FancyBboxPatch((left, low), width, height, boxstyle=rounded, fc="white", ec=edge, lw=0.8)
    )


def _arrow(page: Axes, start: float, end: float, y: float, color: str) -> None:
    line = {"arrowstyle": "-|>", "color": color, "lw": 0.9, "shrinkA": 1.5, "shrinkB": 1.5}
    page.annotate("", (end, y), (start, y), arrowprops=line | {"mutation_scale": 7})


def _write(
    page: Axes,
    x: float,
    y: float,
    text: str,
    *,
    size: float = figure_style.SMALL,
    color: str = figure_style.INK,
    bold: bool = False,
    va: str = "top",
) -> None:
    weight = "bold" if bold else "normal"
    page.text(x, y, text, fontsize=size, color=color, fontweight=weight, va=va, linespacing=1.25)
