"""The reference of commands and of public names is what their docstrings say."""

import runpy
from pathlib import Path

import pytest

import tracecal
from tracecal.cli.main import COMMANDS

COMMAND = Path(__file__).resolve().parents[2] / ("maintenance/describe_api.py")


@pytest.fixture(scope="module")
def described():
    pages = runpy.run_path(str(COMMAND))["described"]()
    return {path.name: (path.read_text(encoding="utf-8"), text) for path, text in pages.items()}


def test_the_pages_are_what_the_docstrings_say(described):
    for page, (written, text) in described.items():
        assert written == text, f"{page}: run make reference"


def test_every_command_option_and_name_is_described(described):
    api = described["python.md"][1]
    options = described["commands.md"][1]
    for name, command in COMMANDS.items():
        section = options.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        shown = [
            option for option in command.build().params if not getattr(option, "hidden", False)
        ]
        flags = [option.opts[0] for option in shown if option.name != "help"]
        assert all(f"| `{flag}` |" in section for flag in flags if flag.startswith("-")), name
    assert all(f"| `{name}" in api for name in tracecal.__all__ if name != "__version__")
