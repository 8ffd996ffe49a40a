"""Reproducible draws of tokens, independent of the batch and the engine."""

import hashlib
from collections.abc import Iterable, Sequence

import torch
from torch.nn.functional import pad

SUMMED_TOGETHER = 256  # tokens whose weights are summed together


class Draws:
    """Draws the next token of each answer, by inverting the distribution function at a uniform.

    The uniform number is a hash of the key of the answer and the step, so the token depends neither
    on the batch nor on the state of a generator.
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
    """A number in [0, 1): 53 bits of a hash of `key`.

    >>> uniform("a") == uniform("a") != uniform("b")
    True
    """
    digest = hashlib.sha256(key.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def inverse_cdf(logits: torch.Tensor, uniforms: Sequence[float]) -> torch.Tensor:
    """The tokens [n] at which the distribution functions of `logits` [n, V] exceed `uniforms`.

    Weights are float32, their sums float64: first of blocks, then within the block that is reached.
    A token of weight 0 is never chosen.
    """
    logits = logits.float()
    weights = (logits - logits.amax(-1, keepdim=True)).exp_()
    weights = pad(weights, (0, -weights.shape[-1] % SUMMED_TOGETHER)).unflatten(
        -1, (-1, SUMMED_TOGETHER)
    )
    ends = weights.sum(-1, dtype=torch.float64).cumsum(-1)
    u = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None]
    reached = u * ends[:, -1:]
    # NaN logits pass everything; `decode` says so.
    block = torch.searchsorted(ends, reached, right=True).clamp_(max=ends.shape[-1] - 1)
    before = ends.gather(-1, block - 1 + (block == 0)) * (block > 0)
    within = weights[torch.arange(len(weights)), block.squeeze(-1)].cumsum(-1, dtype=torch.float64)
    # By rounding the rest may be all of the block: its last token with a weight.
    rest = torch.minimum(reached - before, within[:, -1:] * (1 - 1e-15))
    tokens = block * SUMMED_TOGETHER + torch.searchsorted(within, rest, right=True)
    return tokens.squeeze(-1).clamp_(max=logits.shape[-1] - 1)
