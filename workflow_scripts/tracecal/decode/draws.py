"""Draws that depend on nothing but what is drawn, whichever engine decodes."""

import hashlib
from collections.abc import Iterable, Sequence

import torch


class Draws:
    """Chooses each answer's next token by inverting the distribution function at a uniform.

    The uniform is a hash of the answer's key and the step: what is drawn depends neither on the
    batch nor on any generator's state.
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
        return inverse_cdf(logits / self.temperature, uniforms)


def uniform(key: str) -> float:
    """A number in [0, 1) that is a hash of `key`, 53 bits of it."""
    digest = hashlib.sha256(key.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def inverse_cdf(logits: torch.Tensor, uniforms: Sequence[float]) -> torch.Tensor:
    """The tokens [n] at which the distribution functions of `logits` [n, V] pass `uniforms`.

    Summed in float64; a token of probability 0 is never chosen.
    """
    cumulative = logits.double().softmax(-1).cumsum(-1)
    reached = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None]
    tokens = torch.searchsorted(cumulative, reached * cumulative[:, -1:], right=True).squeeze(-1)
    return tokens.clamp(max=logits.shape[-1] - 1)  # NaN logits pass everything; `decode` says so
