"""LARS, learnable response scoring (Yaldiz et al. 2025): the scorer, its training and its use.

The scorer is a RoBERTa with tokens for bins of probability.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
import transformers
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.models.training import TrainingSettings, constant_rate, device, fit, held_out
from tracecal.capture.batches import Prompt, in_batches
from tracecal.capture.model import loaded as read
from tracecal.capture.model import with_all_weights
from tracecal.errors import InputError
from tracecal.io.checksums import require_sum
from tracecal.io.files import atomic_folder, read_json, write_json


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
    config = transformers.RobertaConfig(
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
    return with_bins(transformers.RobertaForSequenceClassification(config))


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
    kind = read(transformers.AutoConfig, folder).model_type
    if kind not in MODEL_TYPES:
        raise InputError(
            f"lars.encoder: {folder} holds a {kind}; expected one of {', '.join(MODEL_TYPES)}."
        )
    auto_class = transformers.AutoModelForSequenceClassification
    return with_all_weights(auto_class, folder, heads, dtype=torch.float32, **settings)


def new_encoder(
    tokenizer: PreTrainedTokenizerBase,
    language_model: str | Path,
    encoder: str | Path | Mapping[str, int],
    edges: Sequence[float],
) -> PreTrainedModel:
    """The untrained scorer: a folder's RoBERTa, or a small one over the language model's tokens."""
    if not isinstance(encoder, Mapping):
        return adopted_encoder(encoder, edges)
    config = transformers.AutoConfig.from_pretrained(str(language_model), local_files_only=True)
    # Some models have more embeddings than their tokenizer has tokens.
    vocabulary = max(len(tokenizer), config.get_text_config().vocab_size)
    return small_encoder(vocabulary, encoder["layers"], encoder["width"], edges)


TRACE_COLUMNS = ["example_id", "token_ids", "tokens", "surprisal", "finish_reason"]


def train_lars(
    rows: pl.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    language_model: str | Path,
    encoder: str | Path | Mapping[str, int],
    bins: int,
    fitting: TrainingSettings,
    folder: str | Path,
) -> None:
    """Train on `rows` (`group_id`, `correct`, `question`, TRACE_COLUMNS) and write `folder`.

    `encoder` is the folder of a RoBERTa, and `tokenizer` the one in it; or `encoder` has the
    `layers` and `width` of one to train from scratch, over the language model's `tokenizer`.
    """
    correct = rows["correct"].to_list()
    settings = {"training_rows": rows.height, "constant": constant_rate(correct)}
    with atomic_folder(folder) as part:
        if settings["constant"] is None:
            surprisals = rows["surprisal"].explode().to_numpy().astype(float)
            edges = quantile_edges(np.exp(-surprisals), bins)
            torch.manual_seed(fitting.seed)
            model = new_encoder(tokenizer, language_model, encoder, edges).to(device())
            ids = encoded(rows, tokenizer, model.config)
            kept_out = held_out(rows["group_id"].to_list(), fitting.held_out, fitting.seed)
            settings["held_out_losses"] = fit(
                model,
                lambda batch: logits(model, [ids[row] for row in batch]),
                correct,
                kept_out,
                [len(row) for row in ids],
                fitting,
            )
            model.cpu().save_pretrained(part)
        write_json(settings, part / "settings.json")


def lars_probabilities(
    folder: str | Path, answers: pl.DataFrame, tokenizer: PreTrainedTokenizerBase, batch_size: int
) -> pl.DataFrame:
    """`task`, `example_id` and the `probability` that each answer is correct."""
    require_sum(folder)
    settings = Path(folder) / "settings.json"
    # A published scorer has no settings.json.
    constant = read_json(settings)["constant"] if settings.exists() else None
    if constant is not None:
        return answers.select("task", "example_id", probability=pl.lit(constant, pl.Float64))
    model = loaded(folder).eval().to(device())
    if not getattr(model.config, "edges", None):
        raise InputError(
            f"{folder} is not a trained LARS scorer: its config.json has no 'edges' of bins; "
            "set lars.encoder.trained to false to train it."
        )

    @torch.inference_mode()
    def work(batch: list[Prompt]) -> list[dict[str, object]]:
        scores = logits(model, [row["prompt_token_ids"] for row in batch]).double().sigmoid()
        return [
            {"task": row["task"], "example_id": row["example_id"], "probability": score}
            for row, score in zip(batch, scores.tolist(), strict=True)
        ]

    ids = pl.Series(encoded(answers, tokenizer, model.config), dtype=pl.List(pl.Int64))
    inputs = answers.select("task", "example_id", prompt_token_ids=ids).to_dicts()
    probabilities = in_batches(inputs, batch_size, "answers", work)
    return pl.DataFrame(probabilities).sort("task", "example_id")


def logits(model: PreTrainedModel, rows: list[list[int]]) -> torch.Tensor:
    """One logit [rows] per list of token ids; padded on the right, as RoBERTa's positions need."""
    longest = max(map(len, rows))
    pad = model.config.pad_token_id
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=model.device)
    return model(input_ids=ids, attention_mask=(ids != pad).long()).logits[:, 0]
