"""The look of every figure: sizes, fonts, one colour and marker per family, and how it is saved."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracecal.storage.files import atomic_write
from tracecal.tables.settings import Entry

COLUMN_WIDTH = 3.03
TEXT_WIDTH = 6.3
SMALL, NORMAL = 6.5, 7.5
INK, MUTED, FAINT = "#1c1f23", "#666d75", "#dfe3e7"


class Look(NamedTuple):
    """Colour, marker and stacking of an estimator's points, and the colour of its name."""

    color: str
    marker: str
    order: int = 3
    text: str = INK


TRACE = Look("#E69F00", "o", 5, "#B07400")
TRACE_PLUS = Look("#C8321E", "o", 6, "#C8321E")
BEST_BASELINE = Look("#1c1f23", "X", 7)
FAMILIES: Mapping[str, Look] = {
    "likelihood": Look("#2F5D8A", "o"),
    "entropy": Look("#74AEDB", "s"),
    "trajectory": Look("#9BA1A8", "^"),
    "beam": Look("#4A5058", "D"),
    "semantic": Look("#3E9C93", "P"),
}
OTHER = Look("#B9BEC4", "v")

RC = {
    "font.family": "DejaVu Sans",
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelpad": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "legend.handletextpad": 0.1,
    "legend.columnspacing": 1.1,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "tracecal",
    "savefig.dpi": 300,
}


@contextmanager
def applied() -> Iterator[None]:
    """Draw in the shared style, whatever a user's own matplotlibrc says."""
    with matplotlib.style.context(["default", RC]):
        yield


def look(entry: Entry) -> Look:
    """How an estimator is drawn, the same in every figure."""
    if entry.role == "trace":
        return TRACE_PLUS if entry.id == "trace_plus" else TRACE
    return FAMILIES.get(entry.family, OTHER)


def legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """One legend below all panels, on as few lines as fit."""
    across = 8 if figure.get_figwidth() > COLUMN_WIDTH else 3
    figure.legend(handles=handles, loc="outside lower center", ncols=min(across, len(handles)))


def key(name: str, drawn: Look) -> Line2D:
    """A legend entry."""
    return Line2D([], [], ls="", color=drawn.color, marker=drawn.marker, mew=0, label=name)


def family_keys(entries: Iterable[Entry]) -> list[Line2D]:
    """An entry per family of baselines, then one per TRACE estimator."""
    names = {e.label if e.role == "trace" else e.family.capitalize(): look(e) for e in entries}
    return [key(name, drawn) for name, drawn in names.items()]


def panel_title(axes: Axes, letter: str, text: str) -> None:
    axes.set_title(f"({letter}) {text}")


def save(figure: Figure, pdf: str | Path, svg: str | Path) -> None:
    """Write both formats, the same bytes for the same figure."""
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with applied():
        for path, kind in ((pdf, "pdf"), (svg, "svg")):
            with atomic_write(path) as part:
                figure.savefig(part, format=kind, metadata=dateless[kind])
