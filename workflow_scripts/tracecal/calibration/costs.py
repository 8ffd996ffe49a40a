"""The cost of an answer: prices of tokens where they are known, else parameters times tokens."""

from collections.abc import Mapping
from typing import Any

import numpy as np

# Architectures whose layers are attention and a gated MLP, or experts of which a token uses some.
GATED = frozenset(
    "gemma gemma2 gemma3_text llama mistral mixtral olmo olmo2 phi3 qwen2 qwen2_moe qwen3 "
    "qwen3_moe smollm3".split()
)
BILLION, MILLION, THOUSAND = 1e9, 1e6, 1e3
# Units of the mean cost of a question.
BY_PRICE, BY_PARAMETERS = "price of 1000 questions", "billions of active parameters × tokens"
REQUIRED_KEYS = ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads")


def active_parameters(config: Mapping[str, Any]) -> int | None:
    """Count the matrix weights that a token is multiplied with, by a model's config.json.

    These are attention, MLPs (of experts: those that a token uses, and the router) and the output
    matrix. None for an architecture that is not in GATED, or whose layers differ.
    """
    config = config.get("text_config", config)
    differing = config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1
    complete = all(config.get(key) for key in (*REQUIRED_KEYS, "intermediate_size"))
    if config.get("model_type") not in GATED or not complete or differing:
        return None
    hidden, layers, vocabulary, heads = (config[key] for key in REQUIRED_KEYS)
    shared_heads = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or hidden // heads
    attention = 2 * hidden * head * (heads + shared_heads)
    experts = config.get("num_local_experts") or config.get("num_experts") or 0
    active_experts = config.get("num_experts_per_tok", 1) if experts else 1
    width = config.get("moe_intermediate_size") if experts else None
    width = width or config["intermediate_size"]
    mlp = 3 * hidden * width * active_experts + hidden * experts
    mlp += 3 * hidden * (config.get("shared_expert_intermediate_size") or 0) * bool(experts)
    return layers * (attention + mlp) + vocabulary * hidden


def answer_costs(
    n_prompt: np.ndarray,
    n_generated: np.ndarray,
    price: Mapping[str, float] | None,
    parameters: int | None,
) -> np.ndarray | None:
    """Return the cost of each answer [n] from its numbers of tokens; a mean has the unit above.

    `price` is per million `prompt` and `generated` tokens; without it, `parameters` count. None
    where both are unknown.

    >>> answer_costs(np.array([10]), np.array([2]), None, 3_000_000_000).tolist()
    [36.0]
    """
    if price is not None:
        paid = n_prompt * price["prompt"] + n_generated * price["generated"]
        return paid / MILLION * THOUSAND
    if parameters is not None:
        return (n_prompt + n_generated) * (parameters / BILLION)
    return None
