"""Draw the stages of the pipeline and their files of rules, for README and the report's first page.

python workflow_scripts pipeline
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from tracecal.io.files import write_text

ROOT = Path(__file__).resolve().parents[3]
PICTURE, PAGE = "docs/pictures/pipeline.svg", "report/workflow.rst"
# Read by every process; they hold no rule.
SHARED = ("start", "common")


class Stage(NamedTuple):
    """A box: its name, what it makes, its files below rules/, its row, and its half of the row
    (None: both).
    """

    name: str
    makes: str
    files: tuple[str, ...]
    row: int
    half: int | None = None


STAGES = (
    Stage("Rows", "tasks and splits", ("tasks",), 0, 0),
    Stage("Models", "linked, unpacked or fetched", ("models",), 0, 1),
    Stage("Answers", "decoded with their traces; samples, questions", ("generate", "ask"), 1),
    Stage("Labels", "right or wrong", ("label",), 2, 0),
    Stage("Scores", "of every estimator", ("estimate", "encoders"), 2, 1),
    Stage("Calibration", "probabilities and metrics on random splits", ("calibrate",), 3),
    Stage("Analyses", "comparisons with intervals, guarantees", ("analyse",), 4),
    Stage("Tables, figures, pages", "findings, explorer, report", ("report",), 5),
)
WIDTH, HEIGHT, GAP = 390, 76, 22
# Of this picture alone: on the report's first page stand others.
STYLE = (
    ".pipeline text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#1c1f23}"
    ".pipeline .name{font-size:15px;font-weight:bold}.pipeline .makes{font-size:12.5px}"
    ".pipeline .rules{font-size:12px;fill:#59616a}"
    ".pipeline rect{fill:#eef3f8;stroke:#2f5d8a;stroke-width:1.2}"
    ".pipeline path{stroke:#59616a;fill:none}"
)
DARK = (
    "@media (prefers-color-scheme:dark){.pipeline text{fill:#e6e9ed}"
    ".pipeline .rules{fill:#a3abb4}.pipeline rect{fill:#16202b;stroke:#6ea8e0}"
    ".pipeline path{stroke:#a3abb4}}"
)


def picture(style: str = STYLE + DARK) -> str:
    """The stages as SVG, by default for light and for dark pages."""
    last = max(stage.row for stage in STAGES)
    height = (last + 1) * HEIGHT + last * GAP + 4
    boxes = "\n".join(line for stage in STAGES for line in _box(stage))
    arrows = "\n".join(_arrow(side, row) for row in range(last) for side in _sides(row))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pipeline" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" role="img">\n'
        "<title>The pipeline: from rows and models to tables</title>\n"
        f"<style>{style}</style>\n{boxes}\n{arrows}\n</svg>\n"
    )


def _box(stage: Stage) -> Iterator[str]:
    across = WIDTH - 4 if stage.half is None else (WIDTH - 16) / 2
    x = 2 if not stage.half else 2 + across + 12
    top = 2 + stage.row * (HEIGHT + GAP)
    files = ", ".join(stage.files)
    yield f'<rect x="{x:g}" y="{top}" width="{across:g}" height="{HEIGHT}" rx="6"/>'
    for name, text, down in (
        ("name", stage.name, 22),
        ("makes", stage.makes, 42),
        ("rules", f"rules/{files}", 62),
    ):
        yield f'<text class="{name}" x="{x + 9:g}" y="{top + down}">{escape(text)}</text>'


def _sides(row: int) -> list[float]:
    """Where arrows lead from a row to the next: from halves of either."""
    halved = any(stage.half is not None for stage in STAGES if stage.row in (row, row + 1))
    return [WIDTH / 4, WIDTH * 3 / 4] if halved else [WIDTH / 2]


def _arrow(side: float, row: int) -> str:
    top = 2 + row * (HEIGHT + GAP) + HEIGHT
    return f'<path d="M{side:g} {top + 3}v{GAP - 7}m-5 -6l5 6l5 -6"/>'


def with_picture(page: str) -> str:
    """The report's first page, which is light, with the picture in its place."""
    begin, end = ".. The pipeline's picture, written by `workflow_scripts pipeline`", ".. Its end"
    before, _, rest = page.partition(begin)
    lines = "".join(f"   {line}\n" for line in picture(STYLE).splitlines())
    return f"{before}{begin}\n\n.. raw:: html\n\n{lines}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    write_text(picture(), ROOT / PICTURE)
    write_text(with_picture((ROOT / PAGE).read_text("utf-8")), ROOT / PAGE)
