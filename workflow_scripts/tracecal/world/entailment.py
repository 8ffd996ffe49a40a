"""Training a small classifier of entailment on replies of which the world knows what they mean."""

import random
from pathlib import Path
from typing import NamedTuple

import polars as pl
import torch
from torch.nn import functional
from transformers import BertForSequenceClassification

from tracecal.world.descent import descend, length_batches, save
from tracecal.world.encoder import (
    TOKENS,
    EncoderSettings,
    encoder_config,
    encoder_tokenizer,
    padded,
)

RELATIONS = ("entailment", "neutral", "contradiction")


class Pair(NamedTuple):
    """Two replies to one question, and how the first relates to the second."""

    question: str
    premise: str
    hypothesis: str
    relation: str

    def texts(self) -> tuple[str, str]:
        """What is read: both sides with the question, as semantic entropy has it."""
        return f"{self.question} {self.premise}", f"{self.question} {self.hypothesis}"


def train_entailment(
    discussions: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: EncoderSettings,
    folder: str | Path,
) -> None:
    """Train on pairs of replies; write `folder` as a sequence classifier is loaded."""
    tokenizer = encoder_tokenizer(tokenizer_folder)
    torch.manual_seed(settings.seed)
    model = BertForSequenceClassification(encoder_config(tokenizer, settings, RELATIONS))
    look_for_copies(model)
    pairs = reply_pairs(discussions, settings.examples, settings.seed)
    encoded = tokenizer([one.texts() for one in pairs], truncation=True)
    target = torch.tensor([RELATIONS.index(one.relation) for one in pairs])

    def loss(rows: list[int]) -> torch.Tensor:
        read = model(**padded(encoded, rows, tokenizer.pad_token_id))
        return functional.cross_entropy(read.logits, target[rows])

    batches = length_batches(
        list(map(len, encoded["input_ids"])), TOKENS, random.Random(settings.seed)
    )
    descend(model, batches, loss, settings.learning_rate, "entailment")
    save(model, tokenizer, folder, [one.question for one in pairs[:200]])


def look_for_copies(model: BertForSequenceClassification) -> None:
    """Let the first layer begin by attending, from each token, to the same word anywhere.

    Whether two replies say the same is mostly whether words recur. Queries begin as copies of the
    keys, and positions small beside words; without this a small model finds it after millions of
    tokens only.
    """
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight *= 0.03
        attention = model.bert.encoder.layer[0].attention.self
        attention.key.weight *= 2
        attention.query.weight.copy_(attention.key.weight)


def reply_pairs(discussions: pl.DataFrame, count: int, seed: int) -> list[Pair]:
    """`count` pairs, a third of each relation.

    Replies of one meaning entail each other, those of two meanings contradict each other; what is
    said of a question of another family says nothing on this one.
    """
    rng = random.Random(f"{seed} pairs")
    replies = _by_meaning(discussions)
    families = sorted({family for family, _, _ in replies})
    others = {
        family: [meanings for own, _, meanings in replies if own != family] for family in families
    }
    pairs = []
    for number in range(count):
        family, question, meanings = rng.choice(replies)
        relation = RELATIONS[number % 3]
        if relation == "contradiction" and len(meanings) < 2:
            relation = "entailment"
        if relation == "entailment":
            sides = rng.choices(rng.choice(meanings), k=2)
        elif relation == "contradiction":
            sides = [rng.choice(one) for one in rng.sample(meanings, 2)]
        else:
            beside = rng.choice(rng.choice(others[family]))
            sides = rng.sample([rng.choice(rng.choice(meanings)), rng.choice(beside)], 2)
        pairs.append(Pair(question, *sides, relation))
    return pairs


def _by_meaning(discussions: pl.DataFrame) -> list[tuple[str, str, list[list[str]]]]:
    """Family, question and the replies by meaning, of each discussion."""
    frame = (
        discussions.group_by("discussion", "family", "question", "meaning", maintain_order=True)
        .agg("reply")
        .group_by("discussion", "family", "question", maintain_order=True)
        .agg("reply")
    )
    return frame.select("family", "question", "reply").rows()
