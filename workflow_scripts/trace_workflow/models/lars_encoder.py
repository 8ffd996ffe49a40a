"""The encoder of LARS: a RoBERTa with tokens for bins of probability, and its input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from tracecal.capture.model import loaded as read
from tracecal.capture.model import with_all_weights
from tracecal.errors import InputError


def quantile_edges(probabilities: Sequence[float], bins: int) -> list[float]:
    """The upper edges of `bins` equally filled bins; the last is 1."""
    shares = np.arange(1, bins) / bins
    return [*np.quantile(np.asarray(probabilities, float), shares).tolist(), 1.0]


def bin_numbers(probabilities: Sequence[float], edges: Sequence[float]) -> list[int]:
    """The bin of each probability, from 0: the number of edges at or below it; 1 is in the last."""
    numbers = np.digitize(np.asarray(probabilities, float), edges)
    return np.minimum(numbers, len(edges) - 1).tolist()


def few_hot(bins: int, width: int, norm: float) -> torch.Tensor:
    """Embeddings [bins, width]: one positive value on each bin's own dimensions, 0 elsewhere.

    Rows are orthogonal and have the Euclidean norm `norm`.
    """
    bin_of_dimension = torch.arange(width) * bins // width
    hot = (bin_of_dimension == torch.arange(bins)[:, None]).float()
    return hot * norm / hot.sum(-1, keepdim=True).sqrt()


# RoBERTa's: <s> 0, <pad> 1, </s> 2; positions start after the padding's id.
SPECIAL_TOKENS = 3
MAX_TOKENS = 512
MODEL_TYPES = ("roberta", "xlm-roberta", "camembert")
# Heads of masked language models and of other classifiers, which the new classifier replaces.
HEADS = ("classifier", "lm_head", "pooler")


@dataclass(frozen=True)
class TokenLayout:
    """The ids of an encoder's special and bin tokens, and how many tokens fit into its input."""

    start: int
    end: int
    first_bin: int
    room: int
    edges: tuple[float, ...]

    @classmethod
    def of(cls, config: PretrainedConfig) -> "TokenLayout":
        edges = tuple(config.edges)
        room = config.max_position_embeddings - config.pad_token_id - 1
        first = config.vocab_size - len(edges)
        return cls(config.bos_token_id, config.eos_token_id, first, room, edges)


def with_bin_tokens(
    question: Sequence[int],
    answer: Sequence[Sequence[int]],
    bins: Sequence[int],
    layout: TokenLayout,
) -> list[int]:
    """`<s> question </s></s> answer </s>` with a bin token after each answer token.

    `answer` holds the encoder's ids of each token (none for the inner bytes of a character). Where
    the input is too long, the question's beginning is cut first, then the answer's end.
    """
    pieces = zip(answer, bins, strict=True)
    ids = [i for piece, number in pieces for i in (*piece, layout.first_bin + number)]
    ids = ids[: layout.room - 4]
    spare = layout.room - 4 - len(ids)
    shortened = list(question)[max(0, len(question) - spare) :]
    return [layout.start, *shortened, layout.end, layout.end, *ids, layout.end]


def encoded(
    answers: pl.DataFrame, tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig
) -> list[list[int]]:
    """The encoder's input of each answer (`question`, `token_ids`, `tokens`, `surprisal`,
    `finish_reason`).
    """
    layout, shift = TokenLayout.of(config), getattr(config, "own_tokens", None)
    questions = _ids(tokenizer, answers["question"].to_list())
    inputs = []
    for question, row in zip(questions, answers.iter_rows(named=True), strict=True):
        numbers = bin_numbers(np.exp(-np.array(row["surprisal"])), layout.edges)
        if shift is None:
            # The end-of-sequence token has no text of its own, only a probability.
            texts = row["tokens"][:-1] if row["finish_reason"] == "eos" else row["tokens"]
            answer = [*_ids(tokenizer, texts), *([[]] * (len(row["tokens"]) - len(texts)))]
        else:
            question = [shift + token for token in question]
            answer = [[shift + token] for token in row["token_ids"]]
        inputs.append(with_bin_tokens(question, answer, numbers, layout))
    return inputs


def _ids(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    return tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []


def small_encoder(
    vocabulary: int, layers: int, width: int, edges: Sequence[float]
) -> PreTrainedModel:
    """A RoBERTa with random weights over a language model's own `vocabulary`."""
    config = RobertaConfig(
        vocab_size=SPECIAL_TOKENS + vocabulary + len(edges),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 16,
        intermediate_size=2 * width,
        max_position_embeddings=MAX_TOKENS + 2,
        type_vocab_size=1,
        num_labels=1,
        dtype="float32",
    )
    config.edges, config.own_tokens = list(edges), SPECIAL_TOKENS
    return with_bins(RobertaForSequenceClassification(config))


def adopted_encoder(folder: str | Path, edges: Sequence[float]) -> PreTrainedModel:
    """The RoBERTa in `folder` with bin tokens added; its classifier is a new one."""
    model = loaded(folder, HEADS, num_labels=1, ignore_mismatched_sizes=True)
    model.resize_token_embeddings(model.config.vocab_size + len(edges), mean_resizing=False)
    model.config.edges = list(edges)
    return with_bins(model)


def with_bins(model: PreTrainedModel) -> PreTrainedModel:
    """Give the bin tokens few-hot embeddings as long as the other tokens' are on average."""
    weight, bins = model.get_input_embeddings().weight, len(model.config.edges)
    with torch.no_grad():
        norm = weight[:-bins].norm(dim=-1).mean().item()
        weight[-bins:] = few_hot(bins, weight.shape[1], norm)
    return model


def loaded(folder: str | Path, heads: Sequence[str] = (), **settings: object) -> PreTrainedModel:
    """The encoder in `folder`, from safetensors and without remote code; `heads` may be missing.

    Raises `InputError`.
    """
    kind = read(AutoConfig, folder).model_type
    if kind not in MODEL_TYPES:
        raise InputError(
            f"lars.encoder: {folder} holds a {kind}; expected one of {', '.join(MODEL_TYPES)}."
        )
    return with_all_weights(
        AutoModelForSequenceClassification, folder, heads, dtype=torch.float32, **settings
    )


def new_encoder(
    tokenizer: PreTrainedTokenizerBase,
    language_model: str | Path,
    encoder: str | Path | Mapping[str, int],
    edges: Sequence[float],
) -> PreTrainedModel:
    """The untrained scorer: a folder's RoBERTa, or a small one over the language model's tokens."""
    if not isinstance(encoder, Mapping):
        return adopted_encoder(encoder, edges)
    config = AutoConfig.from_pretrained(str(language_model), local_files_only=True)
    # Some models have more embeddings than their tokenizer has tokens.
    vocabulary = max(len(tokenizer), config.get_text_config().vocab_size)
    return small_encoder(vocabulary, encoder["layers"], encoder["width"], edges)
