"""The package as people install it, built from the checkout without a network."""

import subprocess
import sys
from pathlib import Path

from support.checkout import copied_repository

REPOSITORY = Path(__file__).resolve().parents[2]


def install(folder: Path, target: Path) -> Path:
    """Build the wheel in `folder`, install it into `target`, and return the wheel's path."""
    source = copied_repository(folder / "source", but=("docs", "tests", "results")).root
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "wheel", *offline, "-w", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", str(target), str(wheel)], check=True)
    return wheel
