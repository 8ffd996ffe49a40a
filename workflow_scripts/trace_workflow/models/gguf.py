"""Converting a language model in a GGUF file to a folder as Transformers saves it.

GGUF is llama.cpp's format: weights, mostly quantised, and the tokenizer in one file. Weights are
dequantised to float32.
"""

from pathlib import Path

import gguf
import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from tracecal.errors import InputError

# llama.cpp's names of pre-tokenizers that split every digit. Transformers ignores these names and
# uses GPT-2's, which does not.
SINGLE_DIGITS = frozenset({"smollm"})
_DIGITS = "0 12  345"


def save_gguf(file: Path, folder: Path) -> None:
    """Write the model and the tokenizer of `file` into `folder`.

    Raises `InputError` where the converted tokenizer differs from the file's.
    """
    tokenizer = read_tokenizer(file)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    # The weights are dequantised; these attributes would keep them from being saved.
    model.hf_quantizer, model.is_quantized = None, False
    del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def read_tokenizer(file: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a GGUF file, splitting digits as the file states.

    Raises `InputError` where a token's id differs from the file's, or digits are not split.
    """
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    fields = gguf.GGUFReader(str(file)).fields
    metadata = {
        name: field.contents() for name, field in fields.items() if name.startswith("tokenizer")
    }
    if metadata.get("tokenizer.ggml.pre") in SINGLE_DIGITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
        digits = [token for token in tokenizer.tokenize(_DIGITS) if any(map(str.isdigit, token))]
        if digits != [sign for sign in _DIGITS if sign.isdigit()]:
            raise InputError(
                f"{file}: its tokenizer splits {_DIGITS!r} into {digits}, not into single digits."
            )
    tokens = metadata["tokenizer.ggml.tokens"]
    loaded_tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokens))))
    ends = {"eos": tokenizer.eos_token_id, "bos": tokenizer.bos_token_id}
    if loaded_tokens != tokens or any(
        metadata.get(f"tokenizer.ggml.{name}_token_id", number) != number
        for name, number in ends.items()
    ):
        raise InputError(f"{file}: Transformers converts its tokenizer wrongly; use the hub's.")
    return tokenizer
