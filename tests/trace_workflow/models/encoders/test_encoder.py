"""Encoders are loaded whole, and pool as their folder says."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from trace_workflow.models.folders import POOLING, link_model
from trace_workflow.models.text_encoders import load_encoder
from trace_workflow.models.token_sar_weights import similarities
from tracecal.errors import InputError

PAIR = ("The capital is Paris.", "on the Seine, so 42")


@pytest.fixture
def folder(make_encoder, tmp_path):
    """A function: the folder of an encoder of a kind, which a test may change."""

    def make(kind):
        return shutil.copytree(make_encoder(kind).model.name_or_path, tmp_path / kind)

    return make


def declare(folder, **settings):
    (folder / POOLING).parent.mkdir(exist_ok=True)
    (folder / POOLING).write_text(json.dumps({"word_embedding_dimension": 32} | settings))


CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [(CLS, "cls"), (MEAN, "mean"), ({"pooling_mode": "cls"}, "cls"), (None, "mean")],
)
def test_a_linked_folder_pools_as_it_declares(folder, tmp_path, settings, pooling):
    source = folder("embedding")
    if settings:
        declare(source, **settings)
    link_model(source, tmp_path / "linked")
    encoder = load_encoder(tmp_path / "linked")
    assert encoder.pooling == pooling
    inputs = [encoder.tokenizer(text, return_tensors="pt") for text in PAIR]
    with torch.inference_mode():
        states = [encoder.model(**one).last_hidden_state[0] for one in inputs]
    vectors = [one[0] if pooling == "cls" else one.mean(0) for one in states]
    expected = torch.nn.functional.cosine_similarity(*vectors, dim=0).item()
    assert similarities(encoder, [PAIR], 2)[PAIR] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{"pooling_mode_max_tokens": True}, CLS | MEAN | CLS | {"pooling_mode": "lasttoken"}],
)
def test_another_pooling_is_refused(folder, settings):
    source = folder("embedding")
    declare(source, **settings)
    with pytest.raises(InputError, match=r"must pool by cls or mean"):
        load_encoder(source)


@pytest.mark.parametrize(("kind", "task"), [("nli", "sequence"), ("importance", "token")])
def test_a_classifier_without_its_head_is_refused(folder, kind, task):
    source = folder(kind)
    load_encoder(source, task)
    weights = load_file(source / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("classifier")}
    save_file(kept, source / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks the weights classifier\.bias, classifier\.weight"):
        load_encoder(source, task)


def test_an_embedding_model_may_leave_heads_aside_but_lacks_no_layer(folder):
    source = folder("embedding")
    weights = load_file(source / "model.safetensors")
    more = {"cls.predictions.bias": torch.ones(4)}
    kept = {name: value for name, value in weights.items() if not name.startswith("pooler")}
    save_file(kept | more, source / "model.safetensors", metadata={"format": "pt"})
    load_encoder(source)
    kept.pop("encoder.layer.1.output.dense.weight")
    save_file(kept, source / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks the weights encoder\.layer\.1"):
        load_encoder(source)
