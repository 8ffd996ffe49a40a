"""The internal-state probe: its form, what it learns, what it writes."""

import json

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import load_file

from support.supervised_frames import FITTING, states
from trace_workflow.models.probe import GatedProbe, probe_probabilities, train_probe


def auroc(scores, correct):
    right, wrong = scores[correct], scores[~correct]
    return (right[:, None] > wrong[None]).mean() + (right[:, None] == wrong[None]).mean() / 2


def test_the_forward_pass_agrees_with_numpy():
    torch.manual_seed(0)
    probe = GatedProbe(5, 7)
    x = torch.randn(4, 5) * 3 + 2
    probe.standardise(x)
    w = {name: value.double().numpy() for name, value in probe.state_dict().items()}
    z = (x.double().numpy() - x.numpy().mean(0)) / x.numpy().std(0)
    gate = z @ w["gate.weight"].T
    inner = gate / (1 + np.exp(-gate)) * (z @ w["up.weight"].T)
    expected = inner @ w["down.weight"].T @ w["score.weight"].T + w["score.bias"]
    np.testing.assert_allclose(probe(x).detach().numpy(), expected[:, 0], atol=1e-5)


def test_a_dimension_that_never_varies_is_left_alone():
    probe = GatedProbe(2, 2)
    probe.standardise(torch.tensor([[1.0, 3.0], [1.0, 5.0]]))
    assert probe.mean.tolist() == [1.0, 4.0]
    assert probe.scale.tolist() == [1.0, 1.0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe") / "toy"
    train_probe(states(), 2.0, FITTING, folder)
    return folder


def test_it_learns_what_a_plane_separates(trained):
    unseen = states(seed=1)
    scores = probe_probabilities(trained, unseen)
    assert scores.columns == ["task", "example_id", "probability"]
    probabilities = scores["probability"].to_numpy()
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert auroc(probabilities, unseen["correct"].to_numpy()) > 0.95


def test_it_is_kept_as_plain_numbers(trained):
    assert {path.name for path in trained.iterdir()} == {
        "probe.safetensors",
        "settings.json",
        ".settings.json.sha256",
    }
    settings = json.loads((trained / "settings.json").read_text())
    assert settings["layer"] == 2
    assert settings["training_rows"] == 200
    assert settings["units"] == 12
    losses = settings["held_out_losses"]
    assert len(losses) in (40, losses.index(min(losses)) + 1 + FITTING.patience)
    assert load_file(trained / "probe.safetensors")["gate.weight"].shape == (12, 6)


def test_mean_and_scale_come_from_the_fitted_rows_alone(trained):
    rows = states()
    from trace_workflow.models.training import held_out

    kept_out = held_out(rows["group_id"].to_list(), FITTING.held_out, FITTING.seed)
    fitted = np.array(rows["hidden"].to_list())[~np.array(kept_out)]
    weights = load_file(trained / "probe.safetensors")
    np.testing.assert_allclose(weights["mean"], fitted.mean(0), rtol=1e-4)
    np.testing.assert_allclose(weights["scale"], fitted.std(0), rtol=1e-4)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(trained, tmp_path):
    train_probe(states(), 2.0, FITTING, tmp_path / "again")
    other = FITTING.__class__(**FITTING.__dict__ | {"seed": 8})
    train_probe(states(), 2.0, other, tmp_path / "other")
    for name in ("probe.safetensors", "settings.json"):
        assert (trained / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert (trained / name).read_bytes() != (tmp_path / "other" / name).read_bytes()


def test_one_class_gives_a_constant_and_no_weights(tmp_path):
    rows = states(10).with_columns(correct=pl.lit(True))
    train_probe(rows, 2.0, FITTING, tmp_path / "constant")
    names = {path.name for path in (tmp_path / "constant").iterdir()}
    assert names == {"settings.json", ".settings.json.sha256"}
    scores = probe_probabilities(tmp_path / "constant", states(3))["probability"]
    assert scores.to_list() == pytest.approx([11 / 12] * 3)
