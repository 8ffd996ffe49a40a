"""Write the pictures of README and docs, and the findings that they tell, from a finished run.

python workflow_scripts pictures [results/demo]     or results/evening
"""

import sys
from pathlib import Path

from trace_workflow.commands.page_pictures import TOLD, picture, shown, with_findings
from tracecal.errors import InputError
from tracecal.io.files import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[3]


def main(run: Path) -> None:
    """Raises `InputError` where the run is not one that is told of, or has not finished."""
    if run.name not in TOLD:
        raise InputError(f"{run}: README and docs tell of the runs {' and '.join(TOLD)} only")
    page, folder = ROOT / TOLD[run.name].page, ROOT / TOLD[run.name].folder
    for name in sorted(shown(ROOT, folder.name)):
        write_bytes(picture(run, name), folder / name)
        print(folder / name)
    findings = (run / "findings.txt").read_text(encoding="utf-8")
    write_text(with_findings(page.read_text(encoding="utf-8"), findings), page)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/demo")
    except InputError as error:
        sys.exit(f"error: {error}")
