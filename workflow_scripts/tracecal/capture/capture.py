"""Surprisal and entropy from a step's logits in one pass, and reproducible draws from them."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch.nn.functional import pad
from transformers import PreTrainedTokenizerBase

LOG2_E = math.log2(math.e)
LN_2 = math.log(2)
# exp2 of it is the smallest normal float32; smaller weights are negligible
FLOOR = -126.0
# Logits per block: few enough for them and their exponentials to stay in a core's cache.
BLOCK = 1 << 17

StepTrace = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # tokens, surprisal, entropy


def capture(logits: torch.Tensor, tokens: torch.Tensor | None = None) -> StepTrace:
    """The chosen tokens, their surprisal and the entropy of the distribution, each [n].

    `logits` [n, vocabulary] are raw, of any dtype, and converted to float32; `tokens` are the most
    likely ones where None. Values are in nats, at least 0, with 0 log 0 = 0 (paper, section 3.3),
    within 2e-5 of a float64 softmax's up to 262,144 tokens; NaN where a row holds NaN or +inf,
    or nothing but -inf.
    """
    if logits.device.type != "cpu":  # one kernel over all rows, without host synchronisation
        return _compiled()(logits, tokens, _argmax)
    rows = max(1, BLOCK // logits.shape[-1])
    if len(logits) <= rows:
        return _read(logits, tokens, _argmax_on_cpu)
    parts = logits.split(rows)
    chosen = [None] * len(parts) if tokens is None else tokens.split(rows)
    read = [_read(*part, _argmax_on_cpu) for part in zip(parts, chosen, strict=True)]
    return tuple(torch.cat(column) for column in zip(*read, strict=True))


def _argmax_on_cpu(logits: torch.Tensor) -> torch.Tensor:
    """NumPy's is vectorised; PyTorch's took a third of the pass."""
    return torch.from_numpy(logits.numpy().argmax(-1))


def _argmax(logits: torch.Tensor) -> torch.Tensor:
    return logits.argmax(-1)


def _read(
    logits: torch.Tensor,
    tokens: torch.Tensor | None,
    argmax: Callable[[torch.Tensor], torch.Tensor],
) -> StepTrace:
    """`capture` of one block of rows, in place where possible."""
    logits = logits.float()
    highest = logits.amax(-1, keepdim=True)
    # In bits relative to the highest: exp2 is faster than exp. PyTorch sums pairwise.
    bits = (logits - highest).mul_(LOG2_E).clamp_(min=FLOOR)
    weights = bits.exp2()
    total = weights.sum(-1)
    log_total = total.log()
    entropy = log_total - weights.mul_(bits).sum(-1).mul_(LN_2).div_(total)
    if tokens is None:
        return argmax(logits), log_total, entropy.clamp_(min=0)
    below = (highest - logits.gather(-1, tokens[:, None])).squeeze(-1)
    return tokens, below + log_total, entropy.clamp_(min=0)


@cache
def _compiled() -> Callable[..., StepTrace]:
    return torch.compile(_read, dynamic=True, fullgraph=True)


# Sampling tokens reproducibly, whatever the batch and the engine.


SUMMED_TOGETHER = 256  # tokens whose weights are summed together


class Draws:
    """Chooses each answer's next token by inverting the distribution function at a uniform.

    The uniform number is a hash of the answer's key and the step, so the token depends neither on
    the batch nor on a generator's state.
    """

    def __init__(self, keys: Sequence[str], temperature: float | torch.Tensor) -> None:
        self.keys = keys
        self.temperature = temperature

    def __call__(
        self, logits: torch.Tensor, rows: Iterable[int], lengths: Iterable[int]
    ) -> torch.Tensor:
        uniforms = [
            uniform(f"{self.keys[row]}\x1f{length}")
            for row, length in zip(rows, lengths, strict=True)
        ]
        return inverse_cdf(logits.float() / self.temperature, uniforms)


def uniform(key: str) -> float:
    """A number in [0, 1): 53 bits of a hash of `key`."""
    digest = hashlib.sha256(key.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def inverse_cdf(logits: torch.Tensor, uniforms: Sequence[float]) -> torch.Tensor:
    """The tokens [n] at which the distribution functions of `logits` [n, V] exceed `uniforms`.

    Weights are float32, their sums float64: first of blocks, then within the one that is reached.
    A token of weight 0 is never chosen.
    """
    logits = logits.float()
    weights = (logits - logits.amax(-1, keepdim=True)).exp_()
    weights = pad(weights, (0, -weights.shape[-1] % SUMMED_TOGETHER)).unflatten(
        -1, (-1, SUMMED_TOGETHER)
    )
    ends = weights.sum(-1, dtype=torch.float64).cumsum(-1)
    drawn = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None]
    reached = drawn * ends[:, -1:]
    # NaN logits pass everything; `decode` says so.
    block = torch.searchsorted(ends, reached, right=True).clamp_(max=ends.shape[-1] - 1)
    before = ends.gather(-1, block - 1 + (block == 0)) * (block > 0)
    within = weights[torch.arange(len(weights)), block.squeeze(-1)].cumsum(-1, dtype=torch.float64)
    # By rounding what is left may be all of the block: its last token with a weight.
    left = torch.minimum(reached - before, within[:, -1:] * (1 - 1e-15))
    tokens = block * SUMMED_TOGETHER + torch.searchsorted(within, left, right=True)
    return tokens.squeeze(-1).clamp_(max=logits.shape[-1] - 1)


@dataclass
class Answer:
    """One decoded answer and its trace; the three lists have T >= 1 entries (values in nats)."""

    token_ids: list[int] = field(default_factory=list)
    surprisal: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    finish_reason: str | None = None  # None while it grows


def token_texts(tokenizer: PreTrainedTokenizerBase, token_ids: Sequence[int]) -> list[str]:
    """The text that each token adds; joined, the decoded text including special tokens.

    A character of several byte tokens counts as the last one's text; bytes that never complete a
    character become U+FFFD at the end.
    """

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    texts: list[str] = []
    # Each step decodes only a short tail, from the previous character boundary on.
    before = boundary = 0
    for end in range(1, len(token_ids) + 1):
        known, grown = decode(token_ids[before:boundary]), decode(token_ids[before:end])
        complete = not grown.endswith("\ufffd") or end == len(token_ids)
        texts.append(grown[len(known) :] if complete else "")
        if complete:
            before, boundary = boundary, end
    return texts
