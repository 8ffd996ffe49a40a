"""The training loop: early stopping, the best epoch's weights, batches."""

import random
from dataclasses import replace

import pytest
import torch

from support.supervised_frames import FITTING
from trace_workflow.models import training as module
from trace_workflow.models.training import batches, fit


class Drifting(torch.nn.Module):
    """One weight that every step moves by about the learning rate, away from what is held out."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(-0.05))


def test_stopping_waits_as_long_as_its_patience(monkeypatch):
    losses, weights, model = [0.9, 0.5, 0.6, 0.4, 0.4, 0.7, 0.1], [], Drifting()

    def scripted(*_):
        weights.append(model.weight.item())
        return losses[len(weights) - 1]

    monkeypatch.setattr(module, "_loss", scripted)
    settings = replace(FITTING, patience=2)
    seen = fit(
        model, lambda rows: model.weight.expand(len(rows)), [True] * 4, [False] * 3 + [True],
        [0] * 4, settings,
    )  # fmt: skip
    assert seen == [0.9, 0.5, 0.6, 0.4, 0.4, 0.7]
    assert len(set(weights)) == 6
    assert model.weight.item() == weights[3], "the earliest of the lowest"


def test_the_best_epochs_weights_are_kept():
    model, seen = Drifting(), []

    def logits(rows):
        seen.append(model.weight.item())
        return model.weight.expand(len(rows))

    # The fitted rows pull the weight up; the held-out half is best served by a weight of 0.
    correct = [True] * 8 + [True, False]
    kept_out = [False] * 8 + [True, True]
    settings = FITTING.__class__(**FITTING.__dict__ | {"weight_decay": 0.0, "patience": 3})
    losses = fit(model, logits, correct, kept_out, [0] * 10, settings)
    best = min(range(len(losses)), key=losses.__getitem__)
    assert len(losses) == best + 1 + 3 < settings.epochs
    assert best > 0
    assert abs(model.weight.item()) < 0.011
    assert abs(seen[-1]) > 0.02, "it had moved on before it was put back"
    assert not model.training


def test_without_held_out_rows_every_epoch_is_run():
    model = Drifting()
    losses = fit(
        model,
        lambda rows: model.weight.expand(len(rows)),
        [True] * 4,
        [False] * 4,
        [0] * 4,
        FITTING,
    )
    assert losses == []
    assert model.weight.item() > 0.2


def test_batches_hold_every_row_once_and_like_lengths_together():
    lengths = [index % 7 for index in range(50)]
    rows = list(range(0, 50, 2))
    found = batches(rows, lengths, 4, random.Random(3))
    assert sorted(row for batch in found for row in batch) == rows
    spread = [max(lengths[r] for r in b) - min(lengths[r] for r in b) for b in found]
    assert max(spread) <= 2
    assert found != batches(rows, lengths, 4, random.Random(4))


def test_a_wrong_loss_would_show():
    """The held-out loss is the mean binary cross-entropy in nats."""
    model = Drifting()
    losses = fit(
        model,
        lambda rows: model.weight.expand(len(rows)) * 0,
        [True, True, False],
        [False, True, True],
        [0] * 3,
        FITTING,
    )
    assert losses[0] == pytest.approx(0.6931472, abs=1e-6)
