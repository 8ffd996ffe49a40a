"""Write the pictures, findings and numbers of README and docs, from a finished run.

make pictures     or make pictures RUN=results/evening
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import polars as pl

from maintenance import pair
from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.input_files import read_yaml
from tracecal.io.regular_files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class RunInDocs(NamedTuple):
    """A run that README and docs describe: their pages, and the folder of its pictures, if any."""

    pages: tuple[str, ...]
    folder: str | None = None


RESULTS = "docs/background/results.md"
# The runs that README and docs describe.
RUNS = {
    "demo": RunInDocs(("README.md", RESULTS), "docs/pictures"),
    "evening": RunInDocs((RESULTS,)),
}
METRICS = {"auroc": "AUROC", "auroc_calibrated": "AUROC, calibrated", "brier": "Brier score"}
SCORES = {"trace_plus": "TRACE+", "trace": "TRACE"}
RIVALS = {
    "picked": "selected baseline",
    "named": "prespecified baseline",
    "oracle": "best in hindsight",
}
ANALYSES = ("averages", "improvements")
COLUMNS = [*SCORES.values(), *RIVALS.values()]


class Screenshot(NamedTuple):
    """A screenshot: the page in the run's folder, its size, and the pixels left out above."""

    page: str
    width: int
    height: int
    top: int = 0


PAGES = {
    "explorer.png": Screenshot("explorer.html", 1280, 720),
}
# Shows a page from below its controls.
FRAME = """<!doctype html><style>body {{ margin: 0; overflow: hidden }}
iframe {{ border: 0; display: block; margin-top: -{top}px; width: {width}px; height: {all}px }}
</style><iframe src="{source}"></iframe>"""


def pictures_shown(root: Path, folder: str) -> set[str]:
    """The names of a folder's pictures that README and docs, below `root`, show."""
    texts = [root / "README.md", *(root / "docs").rglob("*.md")]
    return {
        name
        for text in texts
        for name in re.findall(rf"\(\S*{folder}/([^/)]+)\)", text.read_text(encoding="utf-8"))
    }


def picture(run: Path, name: str) -> bytes:
    """The content of the file `name`: a page of the run as PNG, or a figure's own SVG.

    Raises `InputError` where the run has not finished it, or where there is no browser.
    """
    if name == "pair.svg":
        return pair.picture(run, *_headline(run))
    shot = PAGES.get(name)
    source = run / (shot.page if shot else f"figures/{name}")
    if not source.exists():
        raise InputError(f"{source}, needed for {name}, does not exist; run first: make demo")
    return _screenshot(source, shot) if shot else source.read_bytes()


def _headline(run: Path) -> tuple[str, str]:
    """The model and the task of a finished run's headline."""
    study = read_yaml(run / "config.yaml")["study"]
    return study["main"]["models"][0], study["headline"]["task"]


def _screenshot(page: Path, shot: Screenshot) -> bytes:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError(f"no browser was found; install one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        screenshot, frame = Path(folder) / "page.png", Path(folder) / "frame.html"
        fields = shot._asdict() | {"all": shot.top + shot.height, "source": page.resolve().as_uri()}
        frame.write_text(FRAME.format(**fields), encoding="utf-8")
        size = f"--window-size={shot.width},{shot.height}"
        switches = ["--headless", "--disable-gpu", "--hide-scrollbars", size]
        if os.geteuid() == 0:
            switches.append("--no-sandbox")
        paths = [f"--user-data-dir={folder}/profile", f"--screenshot={screenshot}"]
        # Virtual time: skip the wait until the page has unpacked its answers.
        waiting = "--virtual-time-budget=10000"
        command = [browser, *switches, *paths, waiting, frame.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        return screenshot.read_bytes()


def with_first_finding(page: str, findings: str) -> str:
    """A page's text with a run's first finding between the comments that mark its place."""
    first = findings.partition("\n")[0]
    return _between(page, "first finding", fill(f"**{first}**", 100, break_on_hyphens=False))


def comparison(averages: pl.DataFrame, improvements: pl.DataFrame) -> str:
    """A run's main comparison as a table in Markdown: means over tasks, and the difference to each
    baseline, positive in favour of TRACE+, with its interval where it has one.
    """
    mean = (pl.col("study") == "main") & pl.col("task").is_null()
    lines = ["| mean over tasks | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for metric, name in METRICS.items():
        means = averages.filter(mean, metric=metric)
        cells = [f"{means.filter(estimator=score)['mean'].item():.3f}" for score in SCORES]
        for against in RIVALS:
            rows = improvements.filter(mean, metric=metric, against=against, estimator="trace_plus")
            row = rows.row(0, named=True)
            interval = "" if row["low"] is None else f" ({row['low']:+.3f} to {row['high']:+.3f})"
            cells.append(f"{row['reference']:.3f}: {row['difference']:+.3f}{interval}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines).replace("-0.", "−0.")


def _between(page: str, name: str, text: str) -> str:
    """`page` with `text` between the two comments that begin with `name`."""
    marks = re.findall(rf"^<!-- (?:end of )?{name}\b.* -->$", page, re.MULTILINE)
    if not marks:
        return page
    begin, end = marks
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


def described(page: str, run: Path) -> str:
    """A page with a finished run's comparison and first finding, where it has their places."""
    frames = [read_parquet(run / f"analyses/{name}.parquet") for name in ANALYSES]
    page = _between(page, f"comparison of {run.name}", comparison(*frames))
    return with_first_finding(page, (run / "findings.txt").read_text(encoding="utf-8"))


def main(run: Path) -> None:
    """Write a finished run's pictures and texts.

    Raises `InputError` where the docs describe no such run, or it has not finished.
    """
    if run.name not in RUNS:
        raise InputError(f"{run}: README and docs describe the runs {' and '.join(RUNS)} only")
    if place := RUNS[run.name].folder:
        folder = ROOT / place
        for name in sorted(pictures_shown(ROOT, folder.name)):
            write_bytes(picture(run, name), folder / name)
            print(folder / name)
    for page in RUNS[run.name].pages:
        write_text(described((ROOT / page).read_text(encoding="utf-8"), run), ROOT / page)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/demo")
    except InputError as error:
        sys.exit(f"error: {error}")
