"""Write the pictures of README and docs, and the findings that they tell, from a finished run.

python workflow_scripts pictures [results/demo]     or results/evening
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from tracecal.errors import InputError
from tracecal.explore.pictures import picture, with_findings
from tracecal.storage.files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[2]


class Told(NamedTuple):
    """The page that tells a run's findings, and the folder of its pictures."""

    page: Path
    folder: Path


TOLD = {
    "demo": Told(ROOT / "README.md", ROOT / "docs/pictures"),
    "evening": Told(ROOT / "docs/evening.md", ROOT / "docs/evening"),
}


def shown(folder: Path) -> set[str]:
    """The names of the pictures of a folder that README and docs show."""
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {
        name
        for text in texts
        for name in re.findall(rf"\(\S*{folder.name}/([^/)]+)\)", text.read_text(encoding="utf-8"))
    }


def main(run: Path) -> None:
    """Raises `InputError` where the run is not one that is told of, or has not finished."""
    if run.name not in TOLD:
        raise InputError(f"{run}: README and docs tell of the runs {' and '.join(TOLD)} only")
    told = TOLD[run.name]
    for name in sorted(shown(told.folder)):
        write_bytes(picture(run, name), told.folder / name)
        print(told.folder / name)
    findings = (run / "findings.txt").read_text(encoding="utf-8")
    write_text(with_findings(told.page.read_text(encoding="utf-8"), findings), told.page)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/demo")
    except InputError as error:
        sys.exit(f"error: {error}")
