"""One calibrator for all tests of the library: fitting it takes a second."""

import json
import random
from dataclasses import replace

import pytest

from support.labelled_answers import predictor_of, ranked_by, stored, unsealed
from support.running import READING, connected
from support.tiny import initialise_model, train_tokenizer
from tracecal.io.files import write_json
from tracecal.serving.scorer import Scorer


@pytest.fixture(autouse=True)
def _the_same_seeds_of_monitors(monkeypatch):
    """A state draws the seed of its ties; another one may raise a false alarm, as often as stated."""
    drawn = random.Random(2)
    monkeypatch.setattr("tracecal.monitoring.state.secrets.randbits", drawn.getrandbits)


@pytest.fixture(scope="session")
def content():
    return json.loads(json.dumps(stored()))


@pytest.fixture(scope="session")
def ranked_content():
    """A calibrator's file whose guarantees rank by TRACE+."""
    return json.loads(json.dumps(unsealed(ranked_by("trace_plus").content())))


@pytest.fixture(scope="session")
def calibrator(ranked_content):
    return predictor_of(ranked_content, "trace_plus", "made up")


@pytest.fixture
def calibrator_file(content, tmp_path):
    path = tmp_path / "C.json"
    write_json(content, path)
    return path


@pytest.fixture(scope="session")
def tiny_model():
    tokenizer = train_tokenizer()
    return initialise_model(len(tokenizer), "llama", 0), tokenizer


@pytest.fixture(scope="session")
def of_top_k(calibrator):
    """The calibrator as one of entropies from the likeliest tokens, as servers list them."""
    fitted_on = calibrator.fitted_on.model_copy(update={"entropy": "top-k"})
    return replace(calibrator, fitted_on=fitted_on)


@pytest.fixture
def client(of_top_k):
    """A client of a proxy before an upstream."""

    def connect(upstream, reading=READING, **settings):
        return connected(Scorer(of_top_k, reading, 0.3), upstream, **settings)

    return connect
