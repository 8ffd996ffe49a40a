"""A percentage is written in one way, `20 %`, on pages, in tables and in what programs print."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "report/contents.yaml",
]
CODE = [
    path
    for folder in ("workflow_scripts", "rules", "examples", "simulations", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".smk") and path.name != "robustness.py"  # has the paper's rows
]
# Not TPR@5%, the paper's name of a metric, nor a replies' `90%` between accents.
TOGETHER = re.compile(r"(?<![@\d.])\d[\d.]*%(?![\w%(])")
# The format that writes a share so, and a number of which the sign follows at once.
FORMATS = re.compile(r":[^{}\s\"']*\.\d%\}|:[.\d]*[fg]\}%|'\.\d%'")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_writes_a_space_before_the_sign(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not TOGETHER.findall(re.sub(r"`[^`]*`", "", text))


def test_a_program_writes_a_space_before_the_sign():
    written = {
        path.relative_to(ROOT).as_posix(): found
        for path in CODE
        if (found := FORMATS.findall(path.read_text(encoding="utf-8")))
    }
    assert written == {}


def test_both_ways_are_told_apart():
    assert TOGETHER.findall("at most 20% and 20 % of TPR@5%") == ["20%"]
    assert FORMATS.findall('f"{x:.0%} {100 * x:.0f} % {100 * x:g}%"') == [":.0%}", ":g}%"]
