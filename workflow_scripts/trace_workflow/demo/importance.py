"""Training a small phrase model for MARS on replies that the demo data builds phrase by phrase.

Of a token's three logits the first is larger where a phrase begins, the second where one goes on;
the logistic of the third is the importance of a phrase that begins there: 1 for what the question
asks for (the number, the name, the claim), 0 for the words around it.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional
from transformers import BertForTokenClassification

from trace_workflow.demo.encoder import (
    TOKENS,
    EncoderSettings,
    encoder_config,
    encoder_tokenizer,
    padded,
)
from trace_workflow.demo.training import length_batches, pad_right, save, train

LOGITS = ("begins", "goes on", "importance")
UNSEEN = -100  # label without loss


def train_importance(
    discussions: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: EncoderSettings,
    folder: str | Path,
) -> None:
    """Train on replies and write `folder` as AutoModelForTokenClassification loads it."""
    tokenizer = encoder_tokenizer(tokenizer_folder)
    torch.manual_seed(settings.seed)
    model = BertForTokenClassification(encoder_config(tokenizer, settings, LOGITS))
    replies = discussions.head(settings.examples)
    encoded = tokenizer(
        replies.select("question", "reply").rows(), truncation=True, return_offsets_mapping=True
    )
    targets = [
        token_targets(encoded.sequence_ids(row), encoded["offset_mapping"][row], starts, point)
        for row, (starts, point) in enumerate(replies.select("starts", "point").rows())
    ]

    def loss(rows: list[int]) -> torch.Tensor:
        logits = model(**padded(encoded, rows, tokenizer.pad_token_id)).logits
        return phrase_loss(logits, [targets[row] for row in rows])

    batches = length_batches(
        list(map(len, encoded["input_ids"])), TOKENS, random.Random(settings.seed)
    )
    train(model, batches, loss, settings.learning_rate, "importance")
    save(model, tokenizer, folder, replies["question"].head(200).to_list())


def token_targets(
    sequences: Sequence[int | None],
    spans: Sequence[tuple[int, int]],
    starts: Sequence[int],
    point: int,
) -> tuple[list[int], list[int]]:
    """For each token of a (question, reply): 0 where a phrase begins, 1 where one goes on; and the
    importance, 0 or 1, of the phrase that begins there. UNSEEN where there is none.

    `spans` are the tokens' characters, `starts` those at which phrases begin. A phrase begins with
    the first token that reaches beyond its start, as spaces belong to the token after them.
    """
    phases, importance = [UNSEEN] * len(spans), [UNSEEN] * len(spans)
    started = 0
    for index, (sequence, (_, end)) in enumerate(zip(sequences, spans, strict=True)):
        if sequence != 1:
            continue
        begins = started < len(starts) and end > starts[started]
        phases[index] = 0 if begins else 1
        if begins:
            importance[index] = int(started == point)
            started += 1
    return phases, importance


def phrase_loss(
    logits: torch.Tensor, targets: Sequence[tuple[list[int], list[int]]]
) -> torch.Tensor:
    """Cross-entropy of the phases and of the importances, each a mean over labelled tokens."""
    phases, importance = (pad_right([row[part] for row in targets], UNSEEN) for part in (0, 1))
    labelled = importance != UNSEEN
    phase_loss = functional.cross_entropy(
        logits[..., :2].flatten(0, 1), phases.flatten(), ignore_index=UNSEEN
    )
    return phase_loss + functional.binary_cross_entropy_with_logits(
        logits[..., 2][labelled], importance[labelled].float()
    )
