"""A logits processor for vLLM that keeps what TRACE is computed from, two floats a token.

It needs vLLM and nothing of the workflow: docs/engines.md shows how to use it alone.
"""

from collections.abc import Sequence
from typing import Any

import torch
from vllm.v1.sample.logits_processor import LogitsProcessor

from tracecal.decode.capture import capture
from tracecal.decode.draws import Draws

Position = tuple[str, int]  # a request's key and how many tokens its answer has


class Capture(LogitsProcessor):
    """Keeps the surprisal of each greedy token and the entropy it was chosen at, in nats, of
    requests that name a key: `SamplingParams(temperature=0, extra_args={"trace": "17"})`.

    Logits are read before anything else bends them and passed on unchanged. What stands at a
    position is overwritten when the position is computed again, so chunks of a prompt and
    preemption do no harm. With a further `{"draw": key, "spread": temperature}` a token is drawn as
    `Draws` does, and is the only one left to vLLM.
    """

    @classmethod
    def validate_params(cls, params: Any) -> None:
        bent = params.temperature, params.repetition_penalty - 1, params.presence_penalty
        bent += params.frequency_penalty, params.min_tokens, len(params.logit_bias or ())
        if "trace" in (params.extra_args or {}) and any(bent):
            raise ValueError(
                "a request with a trace has temperature 0 and nothing that bends logits"
            )

    def __init__(self, config: object, device: torch.device, is_pin_memory: bool) -> None:
        self.requests: dict[int, tuple[dict[str, Any], list[int]]] = {}  # by their rows
        self.steps: list[tuple[list[Position], torch.Tensor]] = []

    def is_argmax_invariant(self) -> bool:
        return False  # else greedy requests would pass by

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that left, came (with the list an answer grows in) and moved."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self.requests.pop(row, None)
        for row, params, _, answer in batch_update.added:
            self.requests[row] = (params.extra_args or {}, answer)
        for one, other, direction in batch_update.moved:
            moved, replaced = self.requests.pop(one, None), self.requests.pop(other, None)
            if moved is not None:
                self.requests[other] = moved
            if replaced is not None and direction.name == "SWAP":
                self.requests[one] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        traced = {row: one for row, one in self.requests.items() if "trace" in one[0]}
        if not traced:
            return logits
        drawn = {row: one for row, one in traced.items() if "draw" in one[0]}
        rows, tokens = list(drawn), None
        if drawn:
            asked, answers = zip(*drawn.values(), strict=True)
            spread = logits.new_tensor([one["spread"] for one in asked])[:, None]
            draw = Draws([one["draw"] for one in asked], spread)
            tokens = logits.argmax(-1)
            tokens[rows] = draw(logits[rows], range(len(rows)), map(len, answers))
        _, surprisal, entropy = capture(logits, tokens)
        places = [(asked["trace"], len(answer)) for asked, answer in traced.values()]
        self.steps.append((places, torch.stack([surprisal, entropy], 1)[list(traced)]))
        if drawn:
            logits[rows] = -torch.inf
            logits[rows, tokens[rows]] = 0
        return logits

    def take(self) -> dict[str, list[list[float]]]:
        """For each key [surprisal, entropy] of every token so far; they are forgotten here."""
        kept: dict[str, dict[int, list[float]]] = {}
        for places, values in self.steps:
            for (key, position), pair in zip(places, values.tolist(), strict=True):
                kept.setdefault(key, {})[position] = pair
        self.steps = []
        return {key: [pairs[place] for place in sorted(pairs)] for key, pairs in kept.items()}


class Captured:
    """What vLLM's workers are extended by, so that `collective_rpc("take_traces")` fetches."""

    def take_traces(self) -> dict[str, list[list[float]]]:
        processors: Sequence[object] = list(self.model_runner.input_batch.logitsprocs.all)
        return next(one for one in processors if isinstance(one, Capture)).take()
