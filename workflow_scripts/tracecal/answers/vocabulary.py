"""The size of a model's vocabulary, where it is not stated: by the model's name or folder.

Entropies from the likeliest tokens need it, and hardly depend on it: see
docs/background/entropy_bounds.md. `vocabulary_of(model)` is None where neither tells;
ASSUMED then stands for it.
"""

import re
from functools import lru_cache
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import read_regular

ASSUMED = 200_000
MAX_CONFIG_BYTES = 2**20
# `vocab_size` of config.json, or the tokens of the tokenizer of models that have none to read
# (tiktoken's o200k_base and cl100k_base); the first that a name begins with, after its owner.
SIZES = {
    r"gpt-oss": 201_088,
    r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(-|$|\.)": 200_019,
    r"gpt-(4|3\.5|35)(-|$)|davinci-002|babbage-002": 100_277,
    r"gpt2|distilgpt2": 50_257,
    r"(meta-)?llama-?4": 202_048,
    r"(meta-)?llama-?3|deepseek-r1-distill-llama|smollm3": 128_256,
    r"(meta-)?llama-?2|tinyllama|mixtral-8x7b|mistral-7b-(instruct-)?v0\.[12]": 32_000,
    r"mistral-7b-(instruct-)?v0\.3|mixtral-8x22b": 32_768,
    r"(open-)?mistral-(nemo|small|large)|ministral": 131_072,
    r"qwen3(-|$)|qwen2(\.5)?-(math-|coder-)?(0\.5|1\.5|3)b|deepseek-r1-distill-qwen-1\.5b": 151_936,
    r"qwen2(\.5)?-(math-|coder-)?\d+b|deepseek-r1-distill-qwen": 152_064,
    r"deepseek-(v3|r1|chat|reasoner)": 129_280,
    r"gemma-3|gemini": 262_144,
    r"gemma": 256_000,
    r"phi-4-mini": 200_064,
    r"phi-4|olmo-2": 100_352,
    r"phi-3": 32_064,
    r"smollm": 49_152,
    r"glm-4": 151_552,
}


@lru_cache(maxsize=1000)
def vocabulary_of(model: str | None) -> int | None:
    """The number of tokens of a model, by its name, or by the configuration in its folder.

    >>> vocabulary_of("Qwen/Qwen2.5-7B-Instruct"), vocabulary_of("my-model")
    (152064, None)
    """
    if model is None:
        return None
    name = model.lower().rstrip("/").rsplit("/", 1)[-1]
    sizes = (size for pattern, size in SIZES.items() if re.match(pattern, name))
    return _configured_size(model) or next(sizes, None)


def _configured_size(folder: str) -> int | None:
    """`vocab_size` in the config.json of a model's folder on this machine."""
    path = Path(folder) / "config.json"
    try:
        content = parsed_json(read_regular(path, MAX_CONFIG_BYTES))
    except (OSError, ValueError, InputError):
        return None
    texts = content.get("text_config") if isinstance(content, dict) else None
    for part in (content, texts):
        size = part.get("vocab_size") if isinstance(part, dict) else None
        if isinstance(size, int) and size > 0:
            return size
    return None


def vocabulary_used(answers: pl.DataFrame, stated: int | None) -> tuple[int | None, str]:
    """The vocabulary that answers were read with, and whence: 'stated', 'model' or 'assumed'."""
    if stated is not None:
        return stated, "stated"
    bounded = answers.filter(pl.col("vocabulary").is_not_null())
    if bounded.is_empty():
        return None, "stated"
    size, model = bounded.sort("vocabulary", nulls_last=True).select("vocabulary", "model").row(-1)
    if vocabulary_of(model) == size:
        return size, "model"
    return size, "assumed" if size == ASSUMED else "stated"


def warn_of_assumed(answers: pl.DataFrame, stated: int | None, source: str) -> None:
    """Say once of a file that entropies rest on an assumed vocabulary."""
    size, whence = vocabulary_used(answers, stated)
    if whence == "assumed":
        LOGGER.warning(
            "%s: entropies are computed for a vocabulary of %s tokens, which is assumed and hardly "
            "changes a probability; give the model's with --vocabulary (vocab_size in its "
            "config.json)",
            *(source, f"{size:,}"),
        )
