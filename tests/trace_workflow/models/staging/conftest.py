"""Fixtures: a hub on loopback with a tiny model, and a client of it."""

import pytest

from support.client import Client
from support.hub_content import tiny_model
from support.hub_server import Hub, serving


@pytest.fixture(scope="session")
def model_files(tmp_path_factory) -> dict[str, bytes]:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def hub(model_files) -> Hub:
    """A hub that serves `tiny/model`; tests add what they need."""
    hub = Hub()
    hub.add("model", "tiny/model", model_files)
    with serving(hub):
        yield hub


@pytest.fixture
def client(hub, tmp_path) -> Client:
    return Client(hub.url, tmp_path / "hf")
