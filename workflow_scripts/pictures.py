"""Make the pictures that README and docs show from a finished run.

python workflow_scripts/pictures.py [results/demo]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tracecal.errors import InputError
from tracecal.storage.files import write_bytes

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Pages that are shown as they look on a screen: the file in the run's folder, and what it shows.
PAGES = {"explorer.png": "explorer.html#task=misconceptions&outcome=confident"}
SIZE = "1280,720"


def shown() -> set[str]:
    """The names of the pictures that README and docs show."""
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {
        name
        for text in texts
        for name in re.findall(r"\(\S*pictures/([^/)]+)\)", text.read_text(encoding="utf-8"))
    }


def make(run: Path, name: str) -> bytes:
    """A picture: of a page in PNG, or a figure of the run as SVG. Raises `InputError`."""
    page, _, fragment = PAGES.get(name, f"figures/{name}").partition("#")
    source = run / page
    if not source.exists():
        raise InputError(f"{source} is not there for {name}; finish the run first: make demo")
    if name not in PAGES:
        return source.read_bytes()
    return screenshot(f"{source.resolve().as_uri()}#{fragment}")


def screenshot(address: str) -> bytes:
    """What a browser shows of a page. Raises `InputError` where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError(f"there is no browser here; install one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        picture = Path(folder) / "page.png"
        switches = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
        if os.geteuid() == 0:
            switches.append("--no-sandbox")
        own = [f"--user-data-dir={folder}/profile", f"--screenshot={picture}"]
        # Time passes as fast as the page can use it, until the answers are unpacked.
        subprocess.run(
            [browser, *switches, *own, "--virtual-time-budget=10000", address],
            check=True,
            capture_output=True,
        )
        return picture.read_bytes()


if __name__ == "__main__":
    run = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/demo"
    try:
        for name in sorted(shown()):
            write_bytes(make(run, name), FOLDER / name)
            print(FOLDER / name)
    except InputError as error:
        sys.exit(f"error: {error}")
