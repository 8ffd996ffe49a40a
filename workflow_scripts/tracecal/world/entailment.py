"""Training a small classifier of entailment on replies of which the world knows what they mean.

To compare is what so small a model hardly finds by itself. It is helped in three ways: its first
layers begin by looking for copies, its first lessons are replies without their question, and there
it is also asked which of their tokens recur.
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

from tracecal.progress import LOGGER
from tracecal.world.encoder import TOKENS, WINDOW, EncoderSettings, encoder_tokenizer, padded
from tracecal.world.reply_pairs import RELATIONS, Pair, reply_pairs
from tracecal.world.training_loop import descend, length_batches, save

HEAD_WIDTH = 16
# How many of the pairs are read without their question: they take half the time
ALONE_SHARE = 0.6
HELD_OUT = 10  # one question in so many is not trained on
CHECKED = 600  # pairs on these
TRUSTED = 0.8  # of which this share must be judged rightly
LONGEST = 3  # tokens in a row of which is asked whether they recur


def train_entailment(
    discussions: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: EncoderSettings,
    folder: str | Path,
) -> float:
    """Train on pairs of replies; write `folder` as a sequence classifier is loaded.

    Returns, and logs, the share of pairs on other questions that it judges as the world does.
    """
    tokenizer = encoder_tokenizer(tokenizer_folder)
    torch.manual_seed(settings.seed)
    model = comparing_model(tokenizer, settings)
    shown, held_out = parted(discussions)
    pairs = reply_pairs(shown, settings.examples, settings.seed)
    alone = round(ALONE_SHARE * len(pairs))
    encoded = tokenizer(
        [
            *((one.premise, one.hypothesis) for one in pairs[:alone]),
            *(one.texts() for one in pairs[alone:]),
        ],
        truncation=True,
    )
    recurring = [recurrences(encoded, row) for row in range(alone)]
    target = torch.tensor([RELATIONS.index(one.relation) for one in pairs])

    def loss(rows: list[int]) -> torch.Tensor:
        inputs = padded(encoded, rows, tokenizer.pad_token_id)
        read = model(**inputs, output_hidden_states=True)
        relation = functional.cross_entropy(read.logits, target[rows])
        if rows[0] >= alone:
            return relation
        seen = inputs["attention_mask"].bool()
        found = model.finder(read.hidden_states[-1])[seen]
        asked = torch.tensor([recurs for row in rows for recurs in recurring[row]])
        return relation + functional.binary_cross_entropy_with_logits(found, asked)

    rng = random.Random(settings.seed)
    lengths = list(map(len, encoded["input_ids"]))
    first = length_batches(lengths[:alone], TOKENS, rng)
    second = [
        [alone + row for row in rows] for rows in length_batches(lengths[alone:], TOKENS, rng)
    ]
    descend(model, [*first, *second], loss, settings.learning_rate, "entailment")
    del model.finder
    save(model, tokenizer, folder, [one.question for one in pairs[:200]])
    return checked(
        model, tokenizer, reply_pairs(held_out, CHECKED, settings.seed, beside=discussions)
    )


def parted(discussions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The discussions to learn from, and those of one question in HELD_OUT to check on."""
    questions = discussions["question"].unique().sort().gather_every(HELD_OUT)
    held_out = discussions["question"].is_in(questions.implode())
    return discussions.filter(~held_out), discussions.filter(held_out)


def comparing_model(
    tokenizer: PreTrainedTokenizerFast, settings: EncoderSettings
) -> DebertaV2ForSequenceClassification:
    """A small DeBERTa that begins by attending, from each token, to its copy on the other side.

    Positions are not encoded: a convolution tells each token of its neighbours, so that a word is
    the same wherever it stands. Queries begin as copies of the keys, but for the side that a token
    is on, which is turned round. `finder` is a layer that only training uses.
    """
    model = DebertaV2ForSequenceClassification(
        DebertaV2Config(
            vocab_size=len(tokenizer),
            hidden_size=settings.width,
            intermediate_size=3 * settings.width,
            num_hidden_layers=settings.layers,
            num_attention_heads=max(1, settings.width // HEAD_WIDTH),
            max_position_embeddings=WINDOW,
            type_vocab_size=2,
            position_biased_input=False,
            conv_kernel_size=3,
            initializer_range=settings.width**-0.5,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
            id2label=dict(enumerate(RELATIONS)),
            label2id={label: index for index, label in enumerate(RELATIONS)},
        )
    )
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
    """Of each token of a pair: whether it, it and the one before, and so on up to LONGEST tokens
    in a row are found on the other side, too: 1.0 or 0.0."""
    tokens, sides = encoded["input_ids"][row], encoded["token_type_ids"][row]
    runs = [
        [tuple(tokens[max(0, end - back) : end + 1]) for back in range(LONGEST)]
        for end in range(len(tokens))
    ]
    there = [
        {run for own, side in zip(runs, sides, strict=True) if side == one for run in own}
        for one in (0, 1)
    ]
    return [
        [float(run in there[1 - side]) for run in own]
        for own, side in zip(runs, sides, strict=True)
    ]


@torch.inference_mode()
def checked(
    model: DebertaV2ForSequenceClassification,
    tokenizer: PreTrainedTokenizerFast,
    pairs: Sequence[Pair],
) -> float:
    """The share of `pairs` that the model judges rightly, logged; a warning below TRUSTED."""
    encoded = tokenizer([one.texts() for one in pairs], truncation=True)
    lengths = list(map(len, encoded["input_ids"]))
    model.eval()
    right = 0
    for rows in length_batches(lengths, TOKENS, random.Random(0)):
        found = model(**padded(encoded, rows, tokenizer.pad_token_id)).logits.argmax(-1)
        right += sum(
            RELATIONS[index] == pairs[row].relation
            for row, index in zip(rows, found.tolist(), strict=True)
        )
    share = right / len(pairs)
    LOGGER.info("entailment: %.2f of %d pairs on other questions judged rightly", share, len(pairs))
    if share < TRUSTED:
        LOGGER.warning(
            "entailment: below %.2f; semantic_entropy and selfcheckgpt are not to be relied upon: "
            "train on more 'examples', or set 'sampling.equivalence: exact'",
            TRUSTED,
        )
    return share
