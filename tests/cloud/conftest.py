"""An S3 server on this machine, and the environment that reaches it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that is up while these tests run."""
    if find_spec("snakemake_storage_plugin_s3") is None:
        pytest.skip("Snakemake's plugin for S3 is not installed here; run `make test-cloud`")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1"]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as output:
        server = subprocess.Popen([*command, "-p", str(port)], stdout=output, stderr=output)
    try:
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        os.environ |= {
            "SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "key",
            "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "secret",
        }
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)
