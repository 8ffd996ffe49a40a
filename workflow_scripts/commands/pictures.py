"""Write the pictures of README and docs, and README's findings, from a finished run.

python workflow_scripts pictures [results/demo]
"""

import re
import sys
from pathlib import Path

from tracecal.errors import InputError
from tracecal.explore.pictures import picture, with_findings
from tracecal.storage.files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[2]
README, FOLDER = ROOT / "README.md", ROOT / "docs/pictures"


def shown() -> set[str]:
    """The names of the pictures that README and docs show."""
    texts = [README, *(ROOT / "docs").glob("*.md")]
    return {
        name
        for text in texts
        for name in re.findall(r"\(\S*pictures/([^/)]+)\)", text.read_text(encoding="utf-8"))
    }


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
