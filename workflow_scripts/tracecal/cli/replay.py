"""`tracecal replay`: exact traces of answers made elsewhere."""

from typing import Any

import tracecal
from tracecal.cli.command import command, require_installed


@command(
    "have exact log-probabilities of answers that came without",
    "tracecal replay --answers samples_svamp.jsonl --weights path/to/model --output replayed.arrow",
    options_of="replay",
    endings={"output": (".arrow",)},
    panels={"The model": ("revision", "dtype", "batch_size")},
)
def replay(*, answers: str, weights: str, output: str, **options: Any) -> None:
    require_installed("'tracecal replay'", "replay", "torch", "transformers", "safetensors")
    tracecal.replay(answers, weights, output=output, **options)
