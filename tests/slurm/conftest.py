"""A SLURM of one node on this machine, and a checkout that is adapted to it."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.checkout import Checkout, copied_repository

SCRIPT = Path(__file__).with_name("cluster.sh")
STATUS = "sacct" if os.environ.get("CLUSTER_SACCT") == "1" else "squeue"


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """The SLURM that is up while these tests run."""
    if find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("Snakemake's plugin for SLURM is not installed here; run `make test-slurm`")
    process = subprocess.run([SCRIPT, "start"], capture_output=True, text=True)
    if process.returncode == 77:
        pytest.skip(process.stderr.strip())
    assert process.returncode == 0, process.stdout + process.stderr
    yield
    subprocess.run([SCRIPT, "stop"], check=True)


@pytest.fixture(scope="session")
def site(cluster, tmp_path_factory) -> Checkout:
    """A checkout whose one file for the site is adapted to this cluster, as a user would."""
    checkout = copied_repository(tmp_path_factory.mktemp("site"))
    profile = checkout.root / "profiles/slurm/config.yaml"
    text = profile.read_text(encoding="utf-8")
    for old, new in (
        ("# gpu_model: a100", "gpu_model: toy"),
        ("cpus_per_task: 2", "cpus_per_task: 1"),
        ("slurm-status-command: squeue", f"slurm-status-command: {STATUS}"),
    ):
        assert old in text
        text = text.replace(old, new)
    profile.write_text(text, encoding="utf-8")
    return checkout
