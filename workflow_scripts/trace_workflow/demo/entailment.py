"""Training a small NLI model on pairs of replies whose relation is known.

So small a model hardly learns by itself to compare two texts. Three things help: attention is
initialised to find copies of a token, training starts with replies without their question, and
there an auxiliary loss predicts which tokens recur on the other side.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional
from transformers import (
    BatchEncoding,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    PreTrainedTokenizerFast,
)

from trace_workflow.demo.encoder import (
    TOKENS,
    EncoderSettings,
    encoder_config,
    encoder_tokenizer,
    padded,
)
from trace_workflow.demo.family import RELATIONS, Pair, reply_pairs
from trace_workflow.demo.training import length_batches, save, train
from tracecal.io.log import LOGGER

HEAD_WIDTH = 16
# Share of the pairs that are read without their question, which takes half the time
ALONE_SHARE = 0.6
HELD_OUT = 10  # one question in ten is held out
CHECKED = 600  # held-out pairs on which accuracy is measured
TRUSTED = 0.8  # smallest accuracy on them without a warning
LONGEST = 3  # longest run of tokens whose recurrence the auxiliary loss predicts


def train_entailment(
    discussions: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: EncoderSettings,
    folder: str | Path,
) -> float:
    """Train on pairs of replies and write `folder` as AutoModelForSequenceClassification loads it.

    Returns, and logs, the accuracy on pairs of held-out questions.
    """
    tokenizer = encoder_tokenizer(tokenizer_folder)
    torch.manual_seed(settings.seed)
    model = comparing_model(tokenizer, settings)
    training, held_out = split_discussions(discussions)
    pairs = reply_pairs(training, settings.examples, settings.seed)
    alone = round(ALONE_SHARE * len(pairs))
    encoded = tokenizer(
        [
            *((pair.premise, pair.hypothesis) for pair in pairs[:alone]),
            *(pair.texts() for pair in pairs[alone:]),
        ],
        truncation=True,
    )
    recurring = [recurrences(encoded, row) for row in range(alone)]
    target = torch.tensor([RELATIONS.index(pair.relation) for pair in pairs])

    def loss(rows: list[int]) -> torch.Tensor:
        inputs = padded(encoded, rows, tokenizer.pad_token_id)
        output = model(**inputs, output_hidden_states=True)
        relation = functional.cross_entropy(output.logits, target[rows])
        if rows[0] >= alone:
            return relation
        visible = inputs["attention_mask"].bool()
        logits = model.finder(output.hidden_states[-1])[visible]
        recurs_target = torch.tensor([recurs for row in rows for recurs in recurring[row]])
        return relation + functional.binary_cross_entropy_with_logits(logits, recurs_target)

    rng = random.Random(settings.seed)
    lengths = list(map(len, encoded["input_ids"]))
    first = length_batches(lengths[:alone], TOKENS, rng)
    second = [
        [alone + row for row in rows] for rows in length_batches(lengths[alone:], TOKENS, rng)
    ]
    train(model, [*first, *second], loss, settings.learning_rate, "entailment")
    del model.finder
    save(model, tokenizer, folder, [pair.question for pair in pairs[:200]])
    return held_out_accuracy(
        model, tokenizer, reply_pairs(held_out, CHECKED, settings.seed, beside=discussions)
    )


def split_discussions(discussions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The discussions to train on, and those to test on: of every HELD_OUT-th question."""
    questions = discussions["question"].unique().sort().gather_every(HELD_OUT)
    held_out = discussions["question"].is_in(questions.implode())
    return discussions.filter(~held_out), discussions.filter(held_out)


def comparing_model(
    tokenizer: PreTrainedTokenizerFast, settings: EncoderSettings
) -> DebertaV2ForSequenceClassification:
    """A small DeBERTa initialised so that each token attends to its copy on the other side.

    Positions are not encoded: a convolution gives each token its neighbours, so that a word is
    the same wherever it stands. Query weights start as copies of the key weights, with the
    direction that encodes the side reversed. `finder` is a layer that only training uses.
    """
    config = encoder_config(
        tokenizer,
        settings,
        RELATIONS,
        DebertaV2Config,
        HEAD_WIDTH,
        type_vocab_size=2,
        position_biased_input=False,
        conv_kernel_size=3,
    )
    model = DebertaV2ForSequenceClassification(config)
    side = functional.normalize(torch.randn(settings.width), dim=0)
    with torch.no_grad():
        model.deberta.embeddings.token_type_embeddings.weight.copy_(torch.stack([-side, side]))
        for layer in model.deberta.encoder.layer:
            key = layer.attention.self.key_proj.weight
            key *= 1.5
            turned = key - 2 * torch.outer(key @ side, side)
            layer.attention.self.query_proj.weight.copy_(turned)
    model.finder = torch.nn.Linear(settings.width, LONGEST)
    return model


def recurrences(encoded: BatchEncoding, row: int) -> list[list[float]]:
    """For each token of a pair: 1.0 where the run of 1, 2, ... LONGEST tokens that ends with it
    also occurs on the other side, else 0.0."""
    tokens, sides = encoded["input_ids"][row], encoded["token_type_ids"][row]
    runs = [
        [tuple(tokens[max(0, end - back) : end + 1]) for back in range(LONGEST)]
        for end in range(len(tokens))
    ]
    runs_by_side = [
        {run for ending, side in zip(runs, sides, strict=True) if side == half for run in ending}
        for half in (0, 1)
    ]
    return [
        [float(run in runs_by_side[1 - side]) for run in ending]
        for ending, side in zip(runs, sides, strict=True)
    ]


@torch.inference_mode()
def held_out_accuracy(
    model: DebertaV2ForSequenceClassification,
    tokenizer: PreTrainedTokenizerFast,
    pairs: Sequence[Pair],
) -> float:
    """The share of `pairs` that the model classifies correctly, logged; a warning below TRUSTED."""
    encoded = tokenizer([pair.texts() for pair in pairs], truncation=True)
    lengths = list(map(len, encoded["input_ids"]))
    model.eval()
    correct = 0
    for rows in length_batches(lengths, TOKENS, random.Random(0)):
        predicted = model(**padded(encoded, rows, tokenizer.pad_token_id)).logits.argmax(-1)
        correct += sum(
            RELATIONS[index] == pairs[row].relation
            for row, index in zip(rows, predicted.tolist(), strict=True)
        )
    accuracy = correct / len(pairs)
    LOGGER.info("entailment: accuracy %.2f on %d held-out pairs", accuracy, len(pairs))
    if accuracy < TRUSTED:
        LOGGER.warning(
            "entailment: below %.2f; do not rely on semantic_entropy and selfcheckgpt: "
            "train on more 'examples', or set 'sampling.equivalence: exact'",
            TRUSTED,
        )
    return accuracy
