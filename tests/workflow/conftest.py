"""The smallest run, finished once for all tests."""

import shutil

import pytest
from filelock import FileLock

from workflow.checkout import Checkout, copied_repository


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Checkout:
    """A checkout in which `config/smoke.yaml` has run to its end.

    It runs once; each process that runs tests takes a copy of its own, which tests may edit.
    """
    own = tmp_path_factory.getbasetemp()
    run = (own if worker_id == "master" else own.parent) / "finished"
    with FileLock(f"{run}.lock"):
        if not run.exists():
            begun = copied_repository(run.with_name("begun"))
            begun.snakemake()
            begun.root.rename(run)
    shutil.copytree(run, own / "checkout", symlinks=True)
    return Checkout(own / "checkout")
