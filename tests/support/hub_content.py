"""What the hub on loopback holds: a tiny model and rows, as the bytes of files."""

import io
import json
from pathlib import Path

import polars as pl
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers import decoders as token_decoders
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast


def tiny_model(folder: Path) -> dict[str, bytes]:
    """A random model, as the hub holds one: with weights in other formats, and code."""
    alphabet = {
        piece: n
        for n, piece in enumerate(
            ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())],
        )
    }
    bpe = Tokenizer(models.BPE(alphabet, []))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = token_decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<end>").save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(alphabet),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        initializer_range=0.4,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=None,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder, max_shard_size="30KB")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "model.safetensors.index.json" in files
    unwanted = {
        "README.md": b"# tiny",
        "pytorch_model.bin": b"pickle",
        "modeling_tiny.py": b"raise SystemExit('code of the hub was run')",
        "consolidated.safetensors": b"the same weights once more",
        "original/params.json": b"{}",
    }
    return files | unwanted


def parquet(rows: list[dict]) -> bytes:
    """Rows as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pl.DataFrame(rows).write_parquet(buffer)
    return buffer.getvalue()


def lines(path) -> list[dict]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def dataset_card(configs: dict[str, dict[str, str]]) -> bytes:
    """A README that declares configurations: name -> split -> path."""
    listed = [
        {
            "config_name": name,
            "data_files": [{"split": split, "path": path} for split, path in splits.items()],
        }
        for name, splits in configs.items()
    ]
    return b"---\nconfigs: " + json.dumps(listed).encode() + b"\n---\n# rows\n"
