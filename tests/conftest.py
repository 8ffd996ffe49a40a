"""Fixtures that tests of several layers share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from support.chromium import Chromium, started

# A shared machine is slow now and then; that is no finding.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Tiny models compute nothing that threads would speed up, and threads that wait for a busy core
# slow them down a hundredfold. Torch reads this when it is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what opens a browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("pages")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark rows, which are never committed; without it tests skip."""
    named = os.environ.get("TRACE_SHARED_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no benchmark rows at {folder}; TRACE_SHARED_DATA can name their folder")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser of its own for each file of tests."""
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
