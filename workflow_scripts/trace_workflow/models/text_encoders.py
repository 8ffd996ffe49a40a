"""Small text encoders: loading one, and reading texts or pairs of texts with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from trace_workflow.models.folders import POOLING
from tracecal.capture.batches import in_batches
from tracecal.capture.model import load_tokenizer, loaded, with_all_weights
from tracecal.capture.packed_linear import pack
from tracecal.errors import InputError
from tracecal.io.files import read_json

# RoBERTa's positions start after the padding id: two of its 514 are never used.
_TYPES_WITH_OFFSET = ("roberta", "xlm-roberta", "camembert")
# Heads of masked language models, and poolers.
UNUSED_HEADS = ("pooler", "cls", "lm_head", "mlm", "predictions", "vocab_transform", "classifier")
POOLINGS = ("cls", "mean")
MODE_PREFIX = "pooling_mode_"  # prefix of the settings of older folders, one for each mode
Text = str | tuple[str, str]


@dataclass(frozen=True)
class TextEncoder:
    """A model with its tokenizer; `window` is its input length in tokens, special ones included."""

    model: transformers.PreTrainedModel
    tokenizer: transformers.PreTrainedTokenizerBase
    window: int
    pooling: str = "mean"

    def room(self, texts: int) -> int:
        """How many tokens each of `texts` (1 or 2) texts of one input may have."""
        special = self.tokenizer.num_special_tokens_to_add(pair=texts == 2)
        return (self.window - special) // texts

    @property
    def is_cross_encoder(self) -> bool:
        """Whether it reads a pair of texts at once instead of embedding each."""
        return type(self.model).__name__.endswith("ForSequenceClassification")

    def truncated_questions(
        self, questions: Sequence[str], answers: Sequence[str], room: int
    ) -> list[str]:
        """The questions, truncated on the left to fit into `room` tokens with their answers."""
        joined = [" ".join(pair) for pair in zip(questions, answers, strict=True)]
        encoded = self.tokenizer(
            joined, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [
            question if len(spans) <= room else question[spans[-room][0] :].lstrip()
            for question, spans in zip(questions, encoded["offset_mapping"], strict=True)
        ]

    @torch.inference_mode()
    def read_all(
        self,
        texts: Sequence[Text],
        batch_size: int,
        reduce: Callable[[dict[str, torch.Tensor], Any], Sequence[Any]],
    ) -> list[Any]:
        """`reduce(inputs, output)` of each text or pair, in order; batches have similar lengths."""
        encoded = self.tokenizer(list(texts), truncation=True, max_length=self.window)
        rows = [
            {
                "example_id": index,
                "prompt_token_ids": ids,
                "inputs": {name: encoded[name][index] for name in encoded},
            }
            for index, ids in enumerate(encoded["input_ids"])
        ]

        def work(batch: list[dict[str, Any]]) -> list[tuple[int, Any]]:
            inputs = self.tokenizer.pad([row["inputs"] for row in batch], return_tensors="pt")
            inputs = inputs.to(self.model.device)
            results = reduce(inputs, self.model(**inputs))
            return [(row["example_id"], result) for row, result in zip(batch, results, strict=True)]

        by_index = dict(in_batches(rows, batch_size, "texts", work))
        return [by_index[index] for index in range(len(rows))]


def load_encoder(folder: str | Path, task: str | None = None) -> TextEncoder:
    """The encoder in `folder`, on the GPU where there is one.

    `task` is 'token' or 'sequence' for a classifier of tokens or of sequences; None lets the folder
    decide between a classifier of sequence pairs and an embedding model. Raises `InputError` where
    the folder holds no such model with safetensors weights.
    """
    config = loaded(transformers.AutoConfig, folder)
    declared = (config.architectures or [""])[0]
    if task is None and declared.endswith("ForSequenceClassification"):
        task = "sequence"
    auto_class = {
        None: transformers.AutoModel,
        "sequence": transformers.AutoModelForSequenceClassification,
        "token": transformers.AutoModelForTokenClassification,
    }[task]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # An embedding model needs token states only; heads on top of them are not loaded.
    heads = () if task else UNUSED_HEADS
    model = with_all_weights(auto_class, folder, heads, dtype=torch.float32)
    model = pack(model.to(device).eval())
    tokenizer = load_tokenizer(folder)
    # Padding on the right keeps positions; truncation on the left keeps answers.
    tokenizer.padding_side, tokenizer.truncation_side = "right", "left"
    positions = config.max_position_embeddings
    if config.model_type in _TYPES_WITH_OFFSET:
        positions -= config.pad_token_id + 1
    return TextEncoder(
        model, tokenizer, min(positions, tokenizer.model_max_length), _pooling(folder)
    )


def _pooling(folder: str | Path) -> str:
    """How token states become an embedding: 'cls' or 'mean', as the folder declares it."""
    declared = Path(folder) / POOLING
    if not declared.exists():
        return "mean"
    settings = read_json(declared)
    # Newer folders name the mode; older ones have one boolean each, such as pooling_mode_cls_token.
    on = [key for key, value in settings.items() if key.startswith(MODE_PREFIX) and value]
    modes = [
        key.removeprefix(MODE_PREFIX).removesuffix("_tokens").removesuffix("_token") for key in on
    ]
    if "pooling_mode" in settings:
        modes = [settings["pooling_mode"]]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(
            f"{declared} declares pooling by {', '.join(modes) or 'nothing'}; an embedding model "
            f"must pool by {' or '.join(POOLINGS)}."
        )
    return modes[0]


def visible_texts(
    token_ids: Sequence[int], tokens: Sequence[str], special: frozenset[int]
) -> list[str]:
    """The text that each token adds to the answer: none for special tokens."""
    return ["" if token in special else text for token, text in zip(token_ids, tokens, strict=True)]
