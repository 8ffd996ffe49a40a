"""Shared by the demo's encoders: tokenizer, padding and the configuration of a small model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, BatchEncoding, BertConfig, PreTrainedTokenizerFast

from trace_workflow.demo.training import END_OF_TEXT, END_OF_TURN, pad_right
from tracecal.io.checksums import require_sum

HEAD_WIDTH = 32
WINDOW = 512
TOKENS = 768  # tokens in one training step, padding included
INPUTS = ("input_ids", "token_type_ids", "attention_mask")
Config = TypeVar("Config")


@dataclass(frozen=True)
class EncoderSettings:
    """Size and training of one encoder."""

    layers: int
    width: int
    learning_rate: float
    examples: int
    seed: int


def encoder_tokenizer(folder: str | Path, pairs: bool = True) -> PreTrainedTokenizerFast:
    """The demo data's tokenizer; with `pairs` it adds special tokens like BERT's.

    Without, it adds none: tokens that all texts share would make their mean embeddings similar.
    """
    require_sum(folder)
    tokenizer = AutoTokenizer.from_pretrained(
        folder, padding_side="right", model_max_length=WINDOW, model_input_names=list(INPUTS)
    )
    if not pairs:
        return tokenizer
    begin, end = END_OF_TEXT, END_OF_TURN
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} $B:1 {end}:1",
        special_tokens=[(name, tokenizer.convert_tokens_to_ids(name)) for name in (begin, end)],
    )
    return tokenizer


def encoder_config(
    tokenizer: PreTrainedTokenizerFast,
    settings: EncoderSettings,
    labels: Sequence[str] = (),
    kind: type[Config] = BertConfig,
    head_width: int = HEAD_WIDTH,
    **more: object,
) -> Config:
    """The configuration of a small encoder; `labels` are the classes of a classifier."""
    classes = {"id2label": dict(enumerate(labels))} if labels else {}
    return kind(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        intermediate_size=3 * settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=max(1, settings.width // head_width),
        max_position_embeddings=WINDOW,
        # A classifier reads one token, so attention must work early; a mean does not.
        initializer_range=settings.width**-0.5 if labels else 0.02,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
        **classes,
        label2id={label: index for index, label in enumerate(labels)},
        **more,
    )


def padded(encoded: BatchEncoding, rows: Sequence[int], pad: int) -> dict[str, torch.Tensor]:
    """The inputs of some `rows`, int64 [rows, longest], padded on the right."""
    return {
        name: pad_right([encoded[name][row] for row in rows], filler)
        for name, filler in zip(INPUTS, (pad, 0, 0), strict=True)
    }
