"""What an answer costs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

# Architectures whose layers are attention and a gated MLP, or experts of which a token uses some.
GATED = frozenset(
    "gemma gemma2 gemma3_text llama mistral mixtral olmo olmo2 phi3 qwen2 qwen2_moe qwen3 "
    "qwen3_moe smollm3".split()
)
BILLION, MILLION, THOUSAND = 1e9, 1e6, 1e3
# Units of a mean cost of a question.
BY_PRICE, BY_PARAMETERS = "price of 1000 questions", "billions of active parameters × tokens"


def active_parameters(config: Mapping[str, Any]) -> int | None:
    """The weights of matrices that one token is multiplied with, by a model's config.json.

    Attention, MLPs (of experts: those that a token uses, and the router) and the output matrix.
    Null for an architecture that is not in GATED, or whose layers differ.
    """
    config = config.get("text_config", config)
    needed = ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
    differing = config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1
    known = all(config.get(key) for key in (*needed, "intermediate_size"))
    if config.get("model_type") not in GATED or not known or differing:
        return None
    hidden, layers, vocabulary, heads = (config[key] for key in needed)
    shared_heads = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or hidden // heads
    attention = 2 * hidden * head * (heads + shared_heads)
    experts = config.get("num_local_experts") or config.get("num_experts") or 0
    used = config.get("num_experts_per_tok", 1) if experts else 1
    width = config.get("moe_intermediate_size") if experts else None
    mlp = 3 * hidden * (width or config["intermediate_size"]) * used + hidden * experts
    mlp += 3 * hidden * (config.get("shared_expert_intermediate_size") or 0) * bool(experts)
    return layers * (attention + mlp) + vocabulary * hidden


def answer_costs(
    prompt: np.ndarray,
    generated: np.ndarray,
    price: Mapping[str, float] | None,
    parameters: int | None,
) -> np.ndarray | None:
    """The cost of each answer [n] from its numbers of tokens, so that a mean has the unit above.

    `price` is per million `prompt` and `generated` tokens; without it, `parameters` count. Null
    where both are unknown.
    """
    if price is not None:
        paid = prompt * price["prompt"] + generated * price["generated"]
        return paid / MILLION * THOUSAND
    if parameters is not None:
        return (prompt + generated) * (parameters / BILLION)
    return None
