"""The smallest run, finished once for all tests."""

import shutil
from pathlib import Path

import pytest

from support.checkout import Checkout, copied_repository, copied_smoke_run


@pytest.fixture(scope="session")
def finished(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which `config/smoke.yaml` has run to its end, and which tests may edit."""
    return copied_smoke_run(pytestconfig, tmp_path_factory.getbasetemp() / "checkout")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which nothing has run, for what is told before anything does."""
    return copied_repository(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="module")
def extended(finished: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the finished checkout that a file of tests may add to."""
    copy = tmp_path_factory.mktemp("extended") / "copy"
    shutil.copytree(finished.root, copy, symlinks=True)
    return Checkout(copy)


@pytest.fixture
def broken(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the finished checkout that a test may break."""
    shutil.copytree(finished.root, tmp_path / "copy", symlinks=True)
    return Checkout(tmp_path / "copy")
