"""What the panels of several figures share: notes below an axis, and panels of rows."""

from matplotlib.axes import Axes

from tracecal.pages import figure_style as style


def note_below(axes: Axes, text: str) -> None:
    """A small note in place of the label of the x axis."""
    axes.set_xlabel(text, fontsize=style.SMALL, color=style.MUTED)


def set_row_axis(axes: Axes, n_rows: int) -> None:
    """A y axis of rows from top to bottom: no line, no ticks."""
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(n_rows - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)
