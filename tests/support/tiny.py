"""Tiny models with random weights, made on the spot: real classes, real tokenizers."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers import decoders as token_decoders
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    PhimoeConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
)

TEXT = [
    "What is the capital of France? Paris.",
    "Wie heißt die Hauptstadt von Österreich? Wien.",
    "中国的首都是哪里？ 北京。",
    "12 + 30 = 42, 7 - 5 = 2",
]
ARCHITECTURES = {
    "llama": (LlamaConfig, {}),
    "qwen2": (Qwen2Config, {}),
    "qwen3": (Qwen3Config, {}),
    "mistral": (MistralConfig, {"sliding_window": 8}),
    "gemma2": (Gemma2Config, {"sliding_window": 8}),
    "phimoe": (PhimoeConfig, {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2_moe": (
        Qwen2MoeConfig,
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
        },
    ),
}


def train_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE with two end tokens and a pad token, without a chat template."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = token_decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<end>", "<stop>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXT * 5, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", eos_token="<end>")


def initialise_model(
    vocabulary: int,
    architecture: str,
    seed: int,
    heads: int = 2,
    width: int = 32,
    spread: float = 0.4,
) -> PreTrainedModel:
    """A float32 model of an architecture; logits are sharpened, by the `spread` of its weights, so
    that entropies vary.

    Two of its `heads` share a key-value head.
    """
    torch.manual_seed(seed)
    config_class, extra = ARCHITECTURES[architecture]
    if architecture in ("qwen3", "gemma2"):
        extra = extra | {"head_dim": width // 2}
    config = config_class(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=256,
        initializer_range=spread,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=[1, 2],
        **extra,
    )
    model = AutoModelForCausalLM.from_config(config).eval()
    model.generation_config.eos_token_id = [1, 2]
    model.generation_config.pad_token_id = 0
    return model
