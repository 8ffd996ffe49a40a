import pytest

from trace_workflow.demo.corpus import World, make_world


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(seed=1, size=2000, evaluation=60, training=20)
