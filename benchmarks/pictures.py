"""Pictures that benchmarks draw for pages."""

from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure

from trace_workflow.figures import figure_style


def save_picture(figure: Figure, path: Path, title: str, description: str = "") -> None:
    """Save a figure as SVG, without the PDF; its message describes it where nothing else does."""
    words = description or " ".join(figure.get_suptitle().split())
    with TemporaryDirectory() as folder:
        figure_style.save(figure, Path(folder) / "picture.pdf", path, title, words)
