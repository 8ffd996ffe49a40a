"""docs/background/failures.md names tests that are there and hold the numbers it gives."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs/background/failures.md").read_text(encoding="utf-8")
ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE)[1:]]


@pytest.mark.parametrize(("what", "does", "tested"), ROWS, ids=[row[0] for row in ROWS])
def test_each_fault_has_its_test(what, does, tested):
    files = re.findall(r"`([a-z_/]+\.py)`", tested)
    assert files, what
    text = "".join((TESTS / name).read_text(encoding="utf-8") for name in files)
    for number in re.findall(r"\b\d[\de.-]+\b", tested):
        assert number in text, f"{what}: {number}"


def test_all_faults_are_looked_at():
    assert len(ROWS) >= 14
