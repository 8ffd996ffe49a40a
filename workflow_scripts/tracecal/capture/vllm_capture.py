"""A logits processor for vLLM that keeps surprisal and entropy, two floats per token.

It needs vLLM and nothing of the workflow: docs/guides/vllm.md shows how to use it alone.
"""

from collections.abc import Sequence
from typing import Any

import torch
from vllm.v1.sample.logits_processor import LogitsProcessor

from tracecal.capture.capture import capture
from tracecal.capture.draws import Draws

Position = tuple[str, int]  # a request's key and how many tokens its answer has


class Capture(LogitsProcessor):
    """Keeps surprisal and entropy (nats) of each greedy token, for requests that name a key:
    `SamplingParams(temperature=0, extra_args={"trace": "17"})`.

    Logits are read before anything else changes them, and passed on unchanged. A position that is
    computed again overwrites its values, so chunked prompts and preemption do no harm. With
    further `{"draw": key, "temperature": t}` the token is drawn by `Draws`, and all others are
    masked for vLLM.
    """

    @classmethod
    def validate_params(cls, params: Any) -> None:
        changes = params.temperature, params.repetition_penalty - 1, params.presence_penalty
        changes += params.frequency_penalty, params.min_tokens, len(params.logit_bias or ())
        if "trace" in (params.extra_args or {}) and any(changes):
            raise ValueError(
                "a request with a trace needs temperature 0 and nothing that changes logits"
            )

    def __init__(self, config: object, device: torch.device, is_pin_memory: bool) -> None:
        self.requests: dict[int, tuple[dict[str, Any], list[int]]] = {}  # by row
        self.steps: list[tuple[list[Position], torch.Tensor]] = []

    def is_argmax_invariant(self) -> bool:
        return False  # otherwise greedy requests would bypass the processor

    def update_state(self, batch_update: Any) -> None:
        """Follow requests that left, arrived (with their answer's growing list) and moved."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self.requests.pop(row, None)
        for row, params, _, answer in batch_update.added:
            self.requests[row] = (params.extra_args or {}, answer)
        for source, target, direction in batch_update.moved:
            moved, replaced = self.requests.pop(source, None), self.requests.pop(target, None)
            if moved is not None:
                self.requests[target] = moved
            if replaced is not None and direction.name == "SWAP":
                self.requests[source] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        traced = {row: entry for row, entry in self.requests.items() if "trace" in entry[0]}
        if not traced:
            return logits
        sampled = {row: entry for row, entry in traced.items() if "draw" in entry[0]}
        rows, tokens = list(sampled), None
        if sampled:
            settings, answers = zip(*sampled.values(), strict=True)
            temperature = logits.new_tensor([each["temperature"] for each in settings])[:, None]
            draw = Draws([each["draw"] for each in settings], temperature)
            tokens = logits.argmax(-1)
            tokens[rows] = draw(logits[rows], range(len(rows)), map(len, answers))
        _, surprisal, entropy = capture(logits, tokens)
        places = [(settings["trace"], len(answer)) for settings, answer in traced.values()]
        self.steps.append((places, torch.stack([surprisal, entropy], 1)[list(traced)]))
        if sampled:
            logits[rows] = -torch.inf
            logits[rows, tokens[rows]] = 0
        return logits

    def take(self) -> dict[str, list[list[float]]]:
        """[surprisal, entropy] of every token so far, by key; the processor forgets them."""
        pairs_by_key: dict[str, dict[int, list[float]]] = {}
        for places, values in self.steps:
            for (key, position), pair in zip(places, values.tolist(), strict=True):
                pairs_by_key.setdefault(key, {})[position] = pair
        self.steps = []
        return {key: [pairs[t] for t in sorted(pairs)] for key, pairs in pairs_by_key.items()}


class Captured:
    """Extends vLLM's workers, so that `collective_rpc("take_traces")` fetches the traces."""

    def take_traces(self) -> dict[str, list[list[float]]]:
        processors: Sequence[object] = list(self.model_runner.input_batch.logitsprocs.all)
        return next(entry for entry in processors if isinstance(entry, Capture)).take()
