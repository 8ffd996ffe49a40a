"""Training a small sentence encoder on the corpus of the demo data.

The recipe of models such as all-MiniLM at toy size: a symmetric contrastive loss pulls a question
towards its answer and away from the other answers of the batch.
"""

import random
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional
from transformers import BertModel, PreTrainedTokenizerFast

from trace_workflow.demo.encoder import EncoderSettings, encoder_config, encoder_tokenizer
from trace_workflow.demo.training import save, train

BATCH = 64
SHARPNESS = 20.0  # inverse temperature of the softmax over cosines


def train_similarity(
    corpus: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: EncoderSettings,
    folder: str | Path,
) -> None:
    """Train on `corpus` (prompt, answer) and write `folder` as AutoModel loads it."""
    tokenizer = encoder_tokenizer(tokenizer_folder, pairs=False)
    torch.manual_seed(settings.seed)
    model = BertModel(encoder_config(tokenizer, settings))
    rows = corpus.select("prompt", "answer").head(settings.examples).rows()

    def loss(batch: list[tuple[str, str]]) -> torch.Tensor:
        questions, answers = (
            embed(model, tokenizer, [row[side] for row in batch]) for side in (0, 1)
        )
        return contrast(questions, answers, [answer for _, answer in batch])

    batches = shuffled_batches(rows, settings.seed)
    train(model, batches, loss, settings.learning_rate, "similarity")
    save(model, tokenizer, folder, corpus["prompt"].head(200).to_list())


def shuffled_batches(rows: list[tuple[str, str]], seed: int) -> list[list[tuple[str, str]]]:
    """Full batches of examples in seeded order; an incomplete last batch is dropped."""
    order = random.Random(seed).sample(rows, len(rows))
    count = max(1, len(order) // BATCH)
    return [order[index * BATCH : (index + 1) * BATCH] for index in range(count)]


def embed(model: BertModel, tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """Unit vectors [n, width]: the mean over each text's tokens."""
    inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    states = model(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]
    ).last_hidden_state
    weights = inputs["attention_mask"][:, :, None].to(states.dtype)
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def contrast(questions: torch.Tensor, answers: torch.Tensor, texts: list[str]) -> torch.Tensor:
    """Cross-entropy of finding each question's answer in the batch, and of the reverse.

    `texts` are the answers: one that two questions share is a negative for neither.
    """
    scores = SHARPNESS * questions @ answers.T
    same = torch.tensor([[text == other for other in texts] for text in texts])
    same.fill_diagonal_(False)
    scores = scores.masked_fill(same, float("-inf"))
    target = torch.arange(len(texts))
    forwards, backwards = (
        functional.cross_entropy(logits, target) for logits in (scores, scores.T)
    )
    return (forwards + backwards) / 2
