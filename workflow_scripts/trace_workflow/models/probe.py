"""The internal-state probe (Ji et al. 2024): a gated MLP on the last prompt token's hidden state.

It is a Llama's feed-forward block with a classifier behind it:
score(down(SiLU(gate(x)) * up(x))), here with one logit and on standardised x.
"""

from pathlib import Path

import numpy as np
import polars as pl
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from trace_workflow.models.training import TrainingSettings, constant_rate, device, fit, held_out
from tracecal.io.checksums import require_sum
from tracecal.io.files import atomic_folder, read_json, write_json


class GatedProbe(nn.Module):
    """Hidden states [rows, width] -> logits [rows]."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.gate = nn.Linear(inputs, units, bias=False)
        self.up = nn.Linear(inputs, units, bias=False)
        self.down = nn.Linear(units, inputs, bias=False)
        self.score = nn.Linear(inputs, 1)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        x = (states - self.mean) / self.scale
        return self.score(self.down(functional.silu(self.gate(x)) * self.up(x))).squeeze(-1)

    def standardise(self, states: torch.Tensor) -> None:
        """Take mean and scale from `states` (ddof 0; zero variance -> 1)."""
        scale = states.std(0, correction=0)
        self.mean.copy_(states.mean(0))
        self.scale.copy_(torch.where(scale > 0, scale, 1.0))


def train_probe(
    rows: pl.DataFrame, expansion: float, fitting: TrainingSettings, folder: str | Path
) -> None:
    """Train on `rows` (`group_id`, `correct`, `layer`, `hidden`) and write the probe's folder."""
    states, correct = stacked(rows), rows["correct"].to_list()
    constant = constant_rate(correct)
    settings = {"layer": rows["layer"][0], "training_rows": rows.height, "constant": constant}
    with atomic_folder(folder) as part:
        if constant is None:
            units = max(1, round(expansion * states.shape[1]))
            settings |= {"inputs": states.shape[1], "units": units}
            kept_out = held_out(rows["group_id"].to_list(), fitting.held_out, fitting.seed)
            torch.manual_seed(fitting.seed)
            probe = GatedProbe(states.shape[1], units).to(device())
            states = states.to(device())
            probe.standardise(states[~torch.tensor(kept_out)])
            lengths = [0] * rows.height
            settings["held_out_losses"] = fit(
                probe, lambda batch: probe(states[batch]), correct, kept_out, lengths, fitting
            )
            save_file(probe.cpu().state_dict(), part / "probe.safetensors")
        write_json(settings, part / "settings.json")


def probe_probabilities(folder: str | Path, rows: pl.DataFrame) -> pl.DataFrame:
    """`task`, `example_id` and the `probability` that the answer is correct, for each of `rows`.

    `rows` have `hidden` too, of the layer and width that the probe was trained on.
    """
    require_sum(folder)
    settings = read_json(Path(folder) / "settings.json")
    keys = rows.select("task", "example_id")
    if settings["constant"] is not None:
        return keys.with_columns(probability=pl.lit(settings["constant"], pl.Float64))
    probe = GatedProbe(settings["inputs"], settings["units"])
    probe.load_state_dict(load_file(Path(folder) / "probe.safetensors"))
    with torch.inference_mode():
        probabilities = probe.eval()(stacked(rows)).double().sigmoid().numpy()
    return keys.with_columns(probability=pl.Series(probabilities))


def stacked(rows: pl.DataFrame) -> torch.Tensor:
    """The hidden states, float32 [rows, width]."""
    values = rows["hidden"].explode().to_numpy().astype(np.float32)
    return torch.from_numpy(values.reshape(rows.height, -1))
