"""The semantic similarity of two texts, by a cross-encoder or by a bi-encoder's cosine."""

from collections.abc import Sequence

import torch

from tracecal.errors import InputError
from tracecal.weigh.encoder import Encoder, is_cross_encoder, read_all

Pair = tuple[str, str]


def similarities(encoder: Encoder, pairs: Sequence[Pair], batch_size: int) -> dict[Pair, float]:
    """The similarity of every distinct pair, at most 1; each is computed once."""
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return {}
    read = _cross_similarities if is_cross_encoder(encoder) else _cosines
    return dict(zip(distinct, read(encoder, distinct, batch_size), strict=True))


def _cross_similarities(encoder: Encoder, pairs: list[Pair], batch_size: int) -> list[float]:
    if encoder.model.config.num_labels != 1:
        raise InputError(
            f"{encoder.model.name_or_path} has {encoder.model.config.num_labels} outputs per "
            "pair; encoders.similarity must be a cross-encoder with one (such as "
            "cross-encoder/stsb-roberta-large) or an embedding model."
        )
    return read_all(
        encoder, pairs, batch_size, lambda inputs, output: output.logits[:, 0].sigmoid().tolist()
    )


def _cosines(encoder: Encoder, pairs: list[Pair], batch_size: int) -> list[float]:
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))

    def embed(inputs: dict[str, torch.Tensor], output) -> torch.Tensor:
        return embeddings(output.last_hidden_state, inputs["attention_mask"], encoder.pooling).cpu()

    embedded = torch.stack(read_all(encoder, texts, batch_size, embed))
    row = {text: index for index, text in enumerate(texts)}
    left, right = (embedded[[row[pair[side]] for pair in pairs]] for side in (0, 1))
    return (left * right).sum(-1).tolist()


def embeddings(states: torch.Tensor, mask: torch.Tensor, pooling: str = "mean") -> torch.Tensor:
    """Unit vectors [n, width] from token states [n, longest, width] and their mask."""
    if pooling == "cls":
        pooled = states[:, 0]
    else:
        weights = mask[:, :, None].to(states.dtype)
        pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
    return torch.nn.functional.normalize(pooled, dim=-1)
