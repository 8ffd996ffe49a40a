"""What stands in for vLLM where it is not installed: its interface, over a Transformers model."""

import random
from dataclasses import dataclass, field
from enum import Enum, auto
from types import ModuleType, SimpleNamespace

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
        "vllm.v1.sample.logits_processor": {"LogitsProcessor": type("LogitsProcessor", (), {})},
    }
    made = {name: ModuleType(name) for name in named}
    for name, content in named.items():
        vars(made[name]).update(content)
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


class Engine:
    """An engine of vLLM's interface: it schedules any requests at any time, reads a prompt in
    chunks, forgets requests and begins them again.
    """

    def __init__(self, model, processor, seed: int = 0) -> None:
        self.model, self.processor = model, processor
        self.chance = random.Random(seed)
        self.batch = Batch(self.chance)
        self.requests = {}

    def add_request(self, key: str, prompt: dict, params: SimpleNamespace) -> None:
        self.processor.validate_params(params)
        ids = prompt["prompt_token_ids"]
        self.requests[key] = SimpleNamespace(key=key, params=params, prompt=ids, answer=[])

    def abort_request(self, keys: list[str]) -> None:
        for key in keys:
            del self.requests[key]

    def has_unfinished_requests(self) -> bool:
        return bool(self.requests)

    @torch.inference_mode()
    def step(self) -> list[SimpleNamespace]:
        waiting = list(self.requests.values())
        scheduled = self.chance.sample(waiting, self.chance.randint(1, min(4, len(waiting))))
        self.processor.update_state(self.batch.schedule(scheduled))
        read = [request.prompt + request.answer for request in self.batch.rows]
        # Of some only a chunk is read: what comes of it is thrown away.
        cut = [self.chance.random() < 0.3 and len(ids) > 1 for ids in read]
        given = [ids[: len(ids) // 2] if part else ids for ids, part in zip(read, cut, strict=True)]
        logits = torch.stack([self.model(torch.tensor([ids])).logits[0, -1] for ids in given])
        tokens = self.processor.apply(logits.float()).argmax(-1).tolist()
        outputs = []
        for request, token, part in zip(list(self.batch.rows), tokens, cut, strict=True):
            if not part:
                request.answer.append(token)
                over = len(request.answer) == request.params.max_tokens
                if over:
                    del self.requests[request.key]
                given = SimpleNamespace(token_ids=[token])
                outputs.append(
                    SimpleNamespace(request_id=request.key, outputs=[given], finished=over)
                )
        return outputs

    def reset_prefix_cache(self) -> None:
        pass

    def collective_rpc(self, method: str) -> list:
        assert method == "take_traces"
        return [self.processor.take()]
