"""What stands in for vLLM where it is not installed: its interfaces, over a Transformers model."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import torch


class MoveDirectionality(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass
class BatchUpdate:
    """As vllm.v1.sample.logits_processor.interface has it."""

    removed: list = field(default_factory=list)
    added: list = field(default_factory=list)
    moved: list = field(default_factory=list)


def modules() -> dict[str, ModuleType]:
    """What `sys.modules` holds of vLLM, as far as it is used."""
    named = {
        "vllm": {"SamplingParams": sampling_params},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(DELTA="delta")},
        "vllm.v1.sample": {},
        "vllm.v1.sample.logits_processor": {"LogitsProcessor": type("V1", (), {})},
        "vllm.v1.worker.gpu.sample": {},
        "vllm.v1.worker.gpu.sample.logits_processor": {"LogitsProcessor": type("V2", (), {})},
    }
    made = {name: ModuleType(name) for name in named}
    for name, content in named.items():
        vars(made[name]).update(content, __spec__=ModuleSpec(name, None))
    return made


def sampling_params(**given):
    """A request's parameters; the defaults are vLLM's."""
    neutral = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    plain = {"temperature": 1.0, "min_tokens": 0, "logit_bias": None, "extra_args": None}
    return SimpleNamespace(**neutral | plain | given)


class Batch:
    """vLLM's persistent batch: rows without gaps, of whatever requests are scheduled.

    As there, newcomers take the rows of those that left, the last rows fill what is left over, and
    rows may be swapped; every change is told.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rows = []

    def schedule(self, wanted: list) -> BatchUpdate | None:
        """Make the rows those of `wanted` requests (key, params, prompt, answer)."""
        update = BatchUpdate()
        for row, request in enumerate(self.rows):
            if request not in wanted:
                update.removed.append(row)
        free = sorted(update.removed)
        for request in wanted:
            if request not in self.rows:
                row = free.pop(0) if free else len(self.rows)
                self.rows[row : row + 1] = [request]
                update.added.append((row, request.params, request.prompt, request.answer))
        update.removed = free[::-1]
        for row in free:
            while self.rows and self.rows[-1] not in wanted:
                self.rows.pop()
            if row < len(self.rows):
                update.moved.append((len(self.rows) - 1, row, MoveDirectionality.UNIDIRECTIONAL))
                self.rows[row] = self.rows.pop()
        if len(self.rows) > 1 and self.chance.random() < 0.5:
            one, other = self.chance.sample(range(len(self.rows)), 2)
            self.rows[one], self.rows[other] = self.rows[other], self.rows[one]
            update.moved.append((one, other, MoveDirectionality.SWAP))
        told = update.removed or update.added or update.moved
        return update if told else None


CONFIG = SimpleNamespace(speculative_config=None)


class FirstRunner:
    """How vLLM's first model runner calls a processor: it tells every change of its rows."""

    def __init__(self, processor: Callable, chance: random.Random) -> None:
        self.processor = processor(CONFIG, torch.device("cpu"), False)
        self.batch = Batch(chance)

    @property
    def rows(self) -> list:
        return self.batch.rows

    def schedule(self, wanted: list) -> None:
        self.processor.update_state(self.batch.schedule(wanted))

    def leave(self, key: str) -> None:
        """A request is over: its row goes with the next schedule."""

    def can_cut(self, request: SimpleNamespace) -> bool:
        """Whether only a part of what the request has may be read."""
        return True

    def apply(self, logits: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """`lengths` are how many tokens are read, by row."""
        return self.processor.apply(logits)


class SecondRunner:
    """How Model Runner V2 calls it: a request keeps a slot, and rows are in another order each time.

    A request that is not wanted waits in its slot, or loses it and is read again with its answer.
    """

    def __init__(self, processor: Callable, chance: random.Random, most: int = 64) -> None:
        prompt, read = (SimpleNamespace(np=np.zeros(most, np.int32)) for _ in range(2))
        self.state = SimpleNamespace(prompt_len=prompt, prefill_len=read)
        self.processor, self.chance = processor(CONFIG, self.state), chance
        self.free, self.slots, self.rows = list(range(most)), {}, []

    def schedule(self, wanted: list) -> None:
        keys = [request.key for request in wanted]
        for key in set(self.slots).difference(keys):
            if self.chance.random() < 0.5:
                self.leave(key)
        for request in wanted:
            if request.key not in self.slots:
                slot = self.slots[request.key] = self.free.pop()
                self.state.prompt_len.np[slot] = len(request.prompt)
                self.state.prefill_len.np[slot] = len(request.prompt + request.answer)
                self.processor.add_request(slot, request.params)
        self.rows = self.chance.sample(wanted, len(wanted))

    def leave(self, key: str) -> None:
        if key in self.slots:
            self.free.append(self.slots.pop(key))

    def can_cut(self, request: SimpleNamespace) -> bool:
        read = self.state.prefill_len.np[self.slots[request.key]]
        return len(request.prompt + request.answer) == read

    def apply(self, logits: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        slots = np.array([self.slots[request.key] for request in self.rows])
        context = SimpleNamespace(
            idx_mapping_np=slots,
            seq_lens_upper_bound_np=np.array(lengths + [0] * self.chance.randint(0, 2)),
        )
        return self.processor.apply(logits, context)


class Engine:
    """An engine of vLLM's interface: it schedules any requests at any time, reads a prompt in
    chunks, forgets requests and begins them again.
    """

    def __init__(self, model, runner: FirstRunner | SecondRunner, seed: int = 0) -> None:
        self.model, self.runner = model, runner
        self.chance = random.Random(seed)
        self.requests = {}

    def add_request(self, key: str, prompt: dict, params: SimpleNamespace) -> None:
        self.runner.processor.validate_params(params)
        ids = prompt["prompt_token_ids"]
        self.requests[key] = SimpleNamespace(key=key, params=params, prompt=ids, answer=[])

    def abort_request(self, keys: list[str]) -> None:
        for key in keys:
            del self.requests[key]
            self.runner.leave(key)

    def has_unfinished_requests(self) -> bool:
        return bool(self.requests)

    @torch.inference_mode()
    def step(self) -> list[SimpleNamespace]:
        waiting = list(self.requests.values())
        self.runner.schedule(
            self.chance.sample(waiting, self.chance.randint(1, min(4, len(waiting))))
        )
        rows = list(self.runner.rows)
        read = [request.prompt + request.answer for request in rows]
        # Of some only a chunk is read: what comes of it is thrown away.
        cut = [
            self.runner.can_cut(request) and self.chance.random() < 0.3 and len(ids) > 1
            for request, ids in zip(rows, read, strict=True)
        ]
        given = [ids[: len(ids) // 2] if part else ids for ids, part in zip(read, cut, strict=True)]
        logits = torch.stack([self.model(torch.tensor([ids])).logits[0, -1] for ids in given])
        tokens = self.runner.apply(logits.float(), [len(ids) for ids in given]).argmax(-1).tolist()
        outputs = []
        for request, token, part in zip(rows, tokens, cut, strict=True):
            if not part:
                request.answer.append(token)
                over = len(request.answer) == request.params.max_tokens
                if over:
                    self.abort_request([request.key])
                given = SimpleNamespace(token_ids=[token])
                outputs.append(
                    SimpleNamespace(request_id=request.key, outputs=[given], finished=over)
                )
        return outputs

    def reset_prefix_cache(self) -> None:
        pass

    def collective_rpc(self, method: str) -> list:
        assert method == "take_traces"
        return [self.runner.processor.take()]
