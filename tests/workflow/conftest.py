"""The smallest run, finished once for all tests."""

import shutil

import pytest

from workflow.checkout import Checkout, finished_smoke_run


@pytest.fixture(scope="session")
def finished(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which `config/smoke.yaml` has run to its end, and which tests may edit."""
    run = finished_smoke_run(pytestconfig.cache.mkdir("smoke"))
    own = tmp_path_factory.getbasetemp() / "checkout"
    shutil.copytree(run, own, symlinks=True)
    return Checkout(own)
