"""One calibrator for all tests of the room: fitting it takes a second."""

import json

import pytest

from outside.made import stored
from tracecal.outside.fitted import from_stored


@pytest.fixture(scope="session")
def content():
    return json.loads(json.dumps(stored()))


@pytest.fixture(scope="session")
def calibrator(content):
    return from_stored(content, "trace_plus", "made up")
