"""What rows are read as stays: those that the tests read, and copies with a damaged node.

`support.recorded_rows` says how the outcomes are written again.
"""

import logging

import pytest

from support.recorded_rows import FOLDER, damaged, letter, outcome, recorded
from tracecal.answers.formats.layouts import FORMATS

NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@pytest.fixture(autouse=True)
def _quiet():
    """Thousands of rows would warn of an assumed vocabulary."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_every_format_has_rows():
    assert {*NAMES} >= {*FORMATS}


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_read_as_they_were(name):
    for recording in recorded(name):
        assert outcome(recording["row"], recording["reading"]) == recording["outcome"]


@pytest.mark.parametrize("name", NAMES)
def test_damaged_rows_are_read_or_refused_as_they_were(name):
    for recording in recorded(name):
        row, reading, letters = recording["row"], recording["reading"], recording["damaged"]
        for copied, expected in zip(damaged(row, len(letters)), letters, strict=True):
            assert letter(copied, reading) == expected, copied
