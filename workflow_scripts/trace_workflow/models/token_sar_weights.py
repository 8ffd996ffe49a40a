"""TokenSAR's weights: how much an answer's meaning changes without each of its tokens."""

from collections.abc import Sequence

import pyarrow as pa
import torch

from trace_workflow.models.text_encoders import TextEncoder, visible_texts
from tracecal.errors import InputError

Pair = tuple[str, str]


def similarities(encoder: TextEncoder, pairs: Sequence[Pair], batch_size: int) -> dict[Pair, float]:
    """The similarity of every distinct pair, at most 1; each is computed once."""
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return {}
    compare = _cross_similarities if encoder.is_cross_encoder else _cosines
    return dict(zip(distinct, compare(encoder, distinct, batch_size), strict=True))


def _cross_similarities(encoder: TextEncoder, pairs: list[Pair], batch_size: int) -> list[float]:
    if encoder.model.config.num_labels != 1:
        raise InputError(
            f"{encoder.model.name_or_path} has {encoder.model.config.num_labels} outputs per "
            "pair; encoders.similarity must be a cross-encoder with one (such as "
            "cross-encoder/stsb-roberta-large) or an embedding model."
        )
    return encoder.read_all(
        pairs, batch_size, lambda inputs, output: output.logits[:, 0].sigmoid().tolist()
    )


def _cosines(encoder: TextEncoder, pairs: list[Pair], batch_size: int) -> list[float]:
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))

    def embed(inputs: dict[str, torch.Tensor], output) -> torch.Tensor:
        return embeddings(output.last_hidden_state, inputs["attention_mask"], encoder.pooling).cpu()

    embedded = torch.stack(encoder.read_all(texts, batch_size, embed))
    row = {text: index for index, text in enumerate(texts)}
    first, second = (embedded[[row[pair[side]] for pair in pairs]] for side in (0, 1))
    return (first * second).sum(-1).tolist()


def embeddings(states: torch.Tensor, mask: torch.Tensor, pooling: str = "mean") -> torch.Tensor:
    """Unit vectors [n, width] from token states [n, longest, width] and their mask."""
    if pooling == "cls":
        pooled = states[:, 0]
    else:
        weights = mask[:, :, None].to(states.dtype)
        pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
    return torch.nn.functional.normalize(pooled, dim=-1)


TOKEN_WEIGHTS = pa.schema({"example_id": pa.string(), "weight": pa.list_(pa.float32())})


def token_weights(
    encoder: TextEncoder, answers: Sequence[dict], special: frozenset[int], batch_size: int
) -> list[dict[str, object]]:
    """`example_id` and `weight` R̃ of every answer.

    `answers` have `example_id`, `question`, `token_ids` and `tokens`; `special` are the ids of
    tokens without text. R_t = 1 - sim(question + answer, the same without token t).
    """
    texts = [visible_texts(row["token_ids"], row["tokens"], special) for row in answers]
    joined = ["".join(visible).strip() for visible in texts]
    room = encoder.room(2 if encoder.is_cross_encoder else 1)
    questions = encoder.truncated_questions([row["question"] for row in answers], joined, room)
    visible_tokens = [[token not in special for token in row["token_ids"]] for row in answers]
    pairs = [
        [
            (f"{question} {answer}", f"{question} {shortened if visible else answer}")
            for shortened, visible in zip(without_each(tokens), is_visible, strict=True)
        ]
        for question, answer, tokens, is_visible in zip(
            questions, joined, texts, visible_tokens, strict=True
        )
    ]
    changed = [pair for row in pairs for pair in row if pair[0] != pair[1]]
    alike = similarities(encoder, changed, batch_size)
    return [
        {
            "example_id": row["example_id"],
            "weight": normalised_relevance(
                [1 - alike.get(pair, 1.0) for pair in pairs_of_answer], visible
            ),
        }
        for row, pairs_of_answer, visible in zip(answers, pairs, visible_tokens, strict=True)
    ]


def without_each(texts: Sequence[str]) -> list[str]:
    """The joined `texts` without the first of them, without the second, ...

    A token of only the first bytes of a character (its text is empty, as the character belongs to
    the token of its last byte) takes this character away.
    """
    variants = []
    for position, text in enumerate(texts):
        before, after = "".join(texts[:position]), "".join(texts[position + 1 :])
        variants.append((before + (after if text else after[1:])).strip())
    return variants


def normalised_relevance(relevance: Sequence[float], visible: Sequence[bool]) -> list[float]:
    """R̃ = R / ΣR over the visible tokens; uniform over them where ΣR = 0.

    A negative R, an effect of rounding, counts as 0. All weights are 0 where no token is visible.
    """
    weights = [
        max(value, 0.0) * is_visible for value, is_visible in zip(relevance, visible, strict=True)
    ]
    if not sum(weights):
        weights = [float(is_visible) for is_visible in visible]
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]
