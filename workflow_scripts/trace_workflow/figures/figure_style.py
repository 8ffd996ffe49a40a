"""The look of every figure: sizes, fonts, one colour and marker per family, and how it is saved.

Colours have a contrast of at least 3:1 with their ground, white or, in an SVG that is shown in the
dark, nearly black; shapes alone distinguish TRACE and TRACE+ from each other and from the families,
in grey print too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from textwrap import fill
from typing import NamedTuple
from xml.sax.saxutils import escape

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracecal.estimators.estimator import Entry
from tracecal.io.regular_files import atomic_write, write_text

COLUMN_WIDTH = 3.03
TEXT_WIDTH = 6.3
# The style sheet: sizes in points, at the printed size.
RC = matplotlib.rc_params_from_file(
    Path(__file__).with_name("figures.mplstyle"), use_default_template=False
)
SMALL, NORMAL, LARGE = RC["xtick.labelsize"], RC["font.size"], 10.5
INK, MUTED, FAINT = RC["text.color"], RC["xtick.color"], RC["grid.color"]
FONTS = RC["font.sans-serif"]
RIGHT, WRONG = "#20766d", "#b02a18"  # answers, as in page.css


class Style(NamedTuple):
    """How an estimator is drawn: marker `size`, `order` of drawing, `text` colour of its name."""

    color: str
    marker: str
    size: float = 4.0
    order: int = 3
    line: str = "-"
    text: str = INK


TRACE = Style("#C77700", "D", 4.4, 5, "--", "#9A5B00")
TRACE_PLUS = Style("#AE1E1E", "*", 7.5, 6, "-", "#AE1E1E")
# TRACE's operator M: the mean of the most uncertain window of an answer.
LOCAL_PEAK = TRACE._replace(marker="^", line=":")
BEST_BASELINE = Style("#1c1f23", "X", 4.6, 7)
FAMILIES: Mapping[str, Style] = {
    "likelihood": Style("#2F5D8A", "o"),
    "entropy": Style("#4C8FC4", "s", 3.6),
    "trajectory": Style("#7F868E", ">"),
    "beam": Style("#4A5058", "v"),
    "semantic": Style("#2A8C82", "P", 4.6),
}
OTHER = Style("#868D95", "h")
# What colours become in the dark: an SVG has no ground of its own.
DARK = {
    INK: "#e6e9ed",
    MUTED: "#9aa3ad",
    FAINT: "#3a424b",
    "#ffffff": "#0d1117",
    RIGHT: "#6fcabf",
    WRONG: "#ff8f7f",
    TRACE.color: "#e8a33a",
    TRACE.text: "#e8a33a",
    TRACE_PLUS.color: "#ff7b72",
    OTHER.color: "#a3abb4",
    **dict(
        zip(
            (look.color for look in FAMILIES.values()),
            ("#3f7fca", "#7dbdf2", "#a3abb4", "#c3cad2", "#4fc3b6"),
            strict=True,
        )
    ),
}


@contextmanager
def applied() -> Iterator[None]:
    """Draw in the shared style, whatever a user's own matplotlibrc says."""
    with matplotlib.style.context(["default", RC]):
        yield


def style_of(entry: Entry) -> Style:
    """How an estimator is drawn, the same in every figure."""
    if entry.role == "trace":
        return TRACE_PLUS if entry.id == "trace_plus" else TRACE
    return FAMILIES.get(entry.family, OTHER)


def sentence(text: str, width: float, height: float) -> Figure:
    """In place of a figure (inches) that has nothing to draw, a sentence that says why."""
    figure = Figure(figsize=(width, height))
    figure.text(0.5, 0.5, text, ha="center", va="center")
    return figure


def message(figure: Figure, text: str) -> None:
    """What the figure says, in a sentence above its panels."""
    wide = int(figure.get_figwidth() * 11.5)  # characters of this size in an inch, bold
    figure.suptitle(fill(text, wide), x=0.01, ha="left", fontsize=LARGE, fontweight="bold")


def legend(figure: Figure, handles: Sequence[Line2D], title: str = "") -> None:
    """One legend below all panels, on as few lines as possible, under a shared title."""
    for lines in range(1, len(handles) + 1):
        columns = -(-len(handles) // lines)
        box = figure.legend(handles=handles, loc="outside lower center", ncols=columns, title=title)
        if box.get_window_extent().width <= figure.bbox.width or columns == 1:
            break
        box.remove()
    box.get_title().set(fontsize=SMALL, color=MUTED)


def key(name: str, look: Style, line: str = "", inside: str = "") -> Line2D:
    """A legend entry: a point, or a `line` through one; `inside` leaves its outline."""
    filled = {"mfc": inside} if inside else {"mew": 0}
    return Line2D([], [], ls=line, label=name, **filled, **point(look))


def point(look: Style) -> dict[str, object]:
    """A look's marker, as Matplotlib's arguments."""
    return {"color": look.color, "marker": look.marker, "ms": look.size}


def family_keys(entries: Iterable[Entry]) -> list[Line2D]:
    """One legend entry per family of baselines, then one per TRACE estimator."""
    looks = {e.label if e.role == "trace" else e.family.capitalize(): style_of(e) for e in entries}
    return [key(name, look) for name, look in looks.items()]


def panel_title(axes: Axes, letter: str, text: str) -> None:
    axes.set_title(f"({letter}) {text}")


def note_below(axes: Axes, text: str) -> None:
    """A small note in place of the label of the x axis."""
    axes.set_xlabel(text, fontsize=SMALL, color=MUTED)


def set_row_axis(axes: Axes, n_rows: int) -> None:
    """A y axis of rows from top to bottom: no line, no ticks."""
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(n_rows - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)


def save(figure: Figure, pdf: str | Path, svg: str | Path, title: str, description: str) -> None:
    """Write both formats, the same bytes for the same figure, with title and description.

    Text in the SVG stays text: it can be searched, copied and read aloud. It has no ground, and
    other colours where the page around it is dark.
    """
    with applied():
        with atomic_write(pdf) as part:
            metadata = {"Title": title, "Subject": description, "CreationDate": None}
            figure.savefig(part, format="pdf", metadata=metadata)
        drawing = StringIO()
        figure.savefig(
            drawing, format="svg", transparent=True, metadata={"Title": title, "Date": None}
        )
    rules = [
        f'[style*="{part}: {light.lower()}"]{{{part}:{dark}!important}}'
        for light, dark in DARK.items()
        for part in ("fill", "stroke")
    ]
    in_the_dark = f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    head, body = drawing.getvalue().split("</title>", 1)
    words = f"</title>\n <desc>{escape(description)}</desc>\n {in_the_dark}"
    write_text(f"{head}{words}{body}", svg)
