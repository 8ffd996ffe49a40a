"""Write the pictures of README and docs, and README's findings, from a finished run.

python workflow_scripts/pictures.py [results/demo]
"""

import re
import sys
from pathlib import Path
from textwrap import fill

from tracecal.errors import InputError
from tracecal.explore.pictures import picture
from tracecal.storage.files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[1]
README, FOLDER = ROOT / "README.md", ROOT / "docs/pictures"


def shown() -> set[str]:
    """The names of the pictures that README and docs show."""
    texts = [README, *(ROOT / "docs").glob("*.md")]
    return {
        name
        for text in texts
        for name in re.findall(r"\(\S*pictures/([^/)]+)\)", text.read_text(encoding="utf-8"))
    }


def with_findings(readme: str, findings: str) -> str:
    """README's text with a run's findings as a list between the comments that mark its place."""
    begin, end = re.findall(r"^<!-- .*findings.* -->$", readme, re.MULTILINE)
    before, _, rest = readme.partition(begin)
    points = [fill(line, 100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
              for line in findings.splitlines()]  # fmt: skip
    return "\n".join([f"{before}{begin}", *points, end]) + rest.partition(end)[2]


if __name__ == "__main__":
    run = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/demo"
    try:
        for name in sorted(shown()):
            write_bytes(picture(run, name), FOLDER / name)
            print(FOLDER / name)
        findings = (run / "findings.txt").read_text(encoding="utf-8")
        write_text(with_findings(README.read_text(encoding="utf-8"), findings), README)
    except InputError as error:
        sys.exit(f"error: {error}")
