"""Packed linear layers: the same numbers as PyTorch's own, for every kind of model."""

import copy

import pytest
import torch
from torch import nn

from support.tiny import ARCHITECTURES, initialise_model
from tracecal.capture import packed_linear as packing
from tracecal.capture.model import load_model
from tracecal.capture.packed_linear import PackedLinear, pack


@pytest.fixture(autouse=True)
def small_weights_too(monkeypatch):
    monkeypatch.setattr(packing, "WORTH_PACKING", 0)


def linears(model):
    return [layer for layer in model.modules() if type(layer) is nn.Linear]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_a_packed_model_gives_the_same_logits(architecture):
    model = initialise_model(320, architecture, 0).eval()
    count, packed = len(linears(model)), pack(copy.deepcopy(model))
    assert count and sum(isinstance(layer, PackedLinear) for layer in packed.modules()) == count
    for shape in ((1, 1), (3, 7), (32, 1)):
        ids = torch.randint(320, shape, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(packed(ids).logits, model(ids).logits, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_is_as_exact_as_float32_allows_and_keeps_its_weight(bias):
    torch.manual_seed(0)
    layer = nn.Linear(300, 500, bias=bias)
    states = torch.randn(2, 9, 300)
    packed = PackedLinear(layer)
    exact = copy.deepcopy(layer).double()(states.double()).detach()
    torch.testing.assert_close(packed(states).double().detach(), exact, atol=1e-5, rtol=1e-5)
    assert torch.equal(packed.weight, layer.weight)


@pytest.mark.parametrize(("dtype", "packed"), [("float32", True), ("bfloat16", False)])
def test_loading_packs_float32_alone(tmp_path, dtype, packed):
    initialise_model(320, "llama", 0).save_pretrained(tmp_path)
    assert bool(linears(load_model(tmp_path, dtype))) != packed


def test_only_large_weights_are_worth_it(monkeypatch):
    monkeypatch.setattr(packing, "WORTH_PACKING", 64 * 320)
    model = pack(nn.Sequential(nn.Linear(64, 320), nn.Linear(319, 64)))
    assert [type(layer) for layer in model] == [PackedLinear, nn.Linear]
