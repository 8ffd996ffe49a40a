"""The package as people install it, built from the checkout without a network."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def install(folder: Path, target: Path) -> Path:
    """Build the wheel in `folder`, install it into `target`, and return the wheel's path."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY / "workflow_scripts", source / "workflow_scripts", ignore=ignored)
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "wheel", *offline, "-w", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", str(target), str(wheel)], check=True)
    return wheel
