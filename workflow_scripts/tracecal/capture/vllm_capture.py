"""A logits processor for vLLM that keeps surprisal and entropy, two floats per token.

It needs vLLM and nothing of the workflow: docs/guides/vllm.md shows how to use it alone.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from tracecal.capture.capture import capture
from tracecal.capture.draws import Draws

# vLLM's interfaces of logits processors: that of its first model runner, which may go, and that
# of Model Runner V2, which older versions do not have. Each runner loads only its own.
INTERFACES = tuple(
    import_module(name).LogitsProcessor
    for name in ("vllm.v1.sample.logits_processor", "vllm.v1.worker.gpu.sample.logits_processor")
    if find_spec(name.rpartition(".")[0]) and find_spec(name)
)
# What makes logits others than the model's, or a token other than the likeliest.
NEUTRAL = {
    "temperature": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "min_tokens": 0,
}
ABSENT = (
    "logit_bias",
    "allowed_token_ids",
    "bad_words",
    "structured_outputs",
    "thinking_token_budget",
    "trace_decode_token_ids",
)
Position = tuple[str, int]  # a request's key and how many tokens its answer has
Step = tuple[int, dict[str, Any], int]  # a row, its request's settings, its answer's length


class Capture(*INTERFACES):
    """Keeps surprisal and entropy (nats) of each greedy token, for requests that name a key:
    `SamplingParams(temperature=0, extra_args={"trace": "17"})`.

    Logits are read before anything else changes them, and passed on unchanged. A position that is
    computed again overwrites its values, so chunked prompts and preemption do no harm. With
    further `{"draw": key, "temperature": t}` the token is drawn by `Draws`, and all others are
    masked for vLLM.

    Either of vLLM's model runners can load it: methods with the same name serve both, the others
    one.
    """

    @classmethod
    def validate_params(cls, params: Any) -> None:
        if "trace" not in (params.extra_args or {}):
            return
        changed = [name for name, value in NEUTRAL.items() if getattr(params, name) != value]
        changed += [name for name in ABSENT if getattr(params, name, None)]
        if changed:
            raise ValueError(
                "a request with a trace needs temperature 0 and nothing that changes logits or "
                f"tokens; it has {', '.join(changed)}"
            )

    def __init__(self, config: Any, place: Any, is_pin_memory: bool = False) -> None:
        """`place` is a device for the first runner, and the state of all requests for V2's."""
        if config.speculative_config is not None:
            raise ValueError("traces cannot be kept with speculative decoding; leave it out")
        self.state = place
        self.requests: dict[int, tuple[dict[str, Any], list[int]]] = {}  # by row
        self.slots: dict[int, dict[str, Any]] = {}  # settings of V2's requests by their slot
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

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Take the slot for a request of V2's; return whether its logits are to be shown."""
        self.slots[req_idx] = sampling_params.extra_args or {}
        return "trace" in self.slots[req_idx]

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        traced = list(self._first_runners_steps() if ctx is None else self._steps_of_v2(ctx))
        if not traced:
            return logits
        sampled = [step for step in traced if "draw" in step[1]]
        drawn, tokens = [row for row, _, _ in sampled], None
        if sampled:
            temperature = logits.new_tensor([each["temperature"] for _, each, _ in sampled])
            draw = Draws([each["draw"] for _, each, _ in sampled], temperature[:, None])
            tokens = logits.argmax(-1)
            lengths = [length for _, _, length in sampled]
            tokens[drawn] = draw(logits[drawn], range(len(drawn)), lengths)
        _, surprisal, entropy = capture(logits, tokens)
        places = [(settings["trace"], length) for _, settings, length in traced]
        rows = [row for row, _, _ in traced]
        self.steps.append((places, torch.stack([surprisal, entropy], 1)[rows]))
        if sampled:
            logits[drawn] = -torch.inf
            logits[drawn, tokens[drawn]] = 0
        return logits

    def _first_runners_steps(self) -> Iterator[Step]:
        for row, (settings, answer) in self.requests.items():
            if "trace" in settings:
                yield row, settings, len(answer)

    def _steps_of_v2(self, ctx: Any) -> Iterator[Step]:
        """Without speculative decoding a request has one row, and its length is exact.

        What comes of a part of a prompt (with the answer so far, after a preemption) is not used.
        """
        slots, lengths = ctx.idx_mapping_np.tolist(), ctx.seq_lens_upper_bound_np.tolist()
        for row, (slot, length) in enumerate(zip(slots, lengths, strict=False)):
            settings = self.slots.get(slot, {})
            if "trace" in settings and length >= self.state.prefill_len.np[slot]:
                yield row, settings, length - int(self.state.prompt_len.np[slot])

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
        runner, is_v2 = self.model_runner, getattr(self, "use_v2_model_runner", False)
        processors: Sequence[object] = list(
            runner.sampler.logits_processors if is_v2 else runner.input_batch.logitsprocs.all
        )
        return next(entry for entry in processors if isinstance(entry, Capture)).take()
