"""Loading a causal language model from its folder, with CPU layers as their kernels read them."""

import platform
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.distributed import DistributedConfig
from transformers.utils.logging import disable_progress_bar

from tracecal.errors import InputError
from tracecal.io.checksums import require_sum

# Numbers in a weight from which packing pays, 1 MiB of them: a call takes 10 µs more than MKL's.
WORTH_PACKING = 1 << 18


class PackedLinear(nn.Module):
    """As `nn.Linear`, by oneDNN on a weight that was laid out for it once, for inference only.

    PyTorch multiplies float32 by MKL, which lays the weight out at every call and leaves AVX-512
    unused on processors of other makers.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)
        self.bias = linear.bias

    @property
    def weight(self) -> torch.Tensor:
        """The weight [out, in], laid out as usual again: for models that read it."""
        return self.packed.to_dense()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(states, self.packed, self.bias, "none", [], "")


def pack(model: nn.Module) -> nn.Module:
    """The same model; on an x86 CPU packed layers replace its large float32 linear ones."""
    if platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available():
        for parent in list(model.modules()):
            for name, layer in list(parent.named_children()):
                if type(layer) is nn.Linear and _worth_packing(layer.weight):
                    setattr(parent, name, PackedLinear(layer))
    return model


def _worth_packing(weight: torch.Tensor) -> bool:
    packable = weight.device.type == "cpu" and weight.dtype == torch.float32
    return packable and weight.numel() >= WORTH_PACKING


GENERATION_CONFIG = "generation_config.json"


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer saved in a model folder."""
    return loaded(AutoTokenizer, folder)


def load_model(
    folder: str | Path,
    dtype: str,
    attention: str | None = None,
    quantization: str | None = None,
    across_gpus: bool = False,
    slices: int = 1,
) -> PreTrainedModel:
    """The model in `folder`, for inference only, on the GPU where there is one.

    Weights are read from safetensors only and no code that came with them is run. `across_gpus`
    puts its layers on all GPUs, one after the other; of `slices` processes each holds a part of
    every layer (`models.parallel`). `quantization` ('8bit', '4bit') needs bitsandbytes.
    Raises `InputError` where the folder does not hold such a model or the extra is missing.
    """
    device = "auto" if across_gpus else "cuda" if torch.cuda.is_available() else None
    settings = {
        "dtype": getattr(torch, dtype),
        "attn_implementation": attention,
        "quantization_config": _quantized(quantization, dtype),
        "device_map": None if slices > 1 else device,
        "distributed_config": DistributedConfig(tp_size=slices) if slices > 1 else None,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    if (Path(folder) / GENERATION_CONFIG).is_file():
        loaded(GenerationConfig, folder)  # where it is broken, a model is loaded without it
    model = with_all_weights(AutoModelForCausalLM, folder, **given).eval()
    return model if slices > 1 else pack(model)


def _quantized(quantization: str | None, dtype: str) -> BitsAndBytesConfig | None:
    if quantization is None:
        return None
    if find_spec("bitsandbytes") is None:
        raise InputError(
            f"quantization {quantization!r} needs bitsandbytes, which is not installed: "
            "pip install -r envs/requirements-quantization.txt"
        )
    return BitsAndBytesConfig(
        load_in_8bit=quantization == "8bit",
        load_in_4bit=quantization == "4bit",
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )


disable_progress_bar()  # its bars would fill the logs


def loaded(auto_class: type, folder: str | Path, **settings: object):
    """What `auto_class` reads from `folder`, which matches the checksum beside it where it has one.

    Raises `InputError` where it cannot be read or does not match.
    """
    require_sum(folder)
    try:
        return auto_class.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, **settings
        )
    except Exception as error:  # on a broken folder the libraries may raise anything
        raise InputError(
            f"{folder} is not a loadable Transformers model ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); "
            "expected config.json, *.safetensors and tokenizer files as save_pretrained makes."
        ) from error


def with_all_weights(
    auto_class: type, folder: str | Path, heads: Sequence[str] = (), **settings: object
) -> PreTrainedModel:
    """A model of which every weight is in the folder, and none of the folder's is left over.

    Transformers fills what is missing at random and drops what is left over. Only of the modules
    `heads` (such as 'classifier') may either be. Raises `InputError` naming the weights.
    """
    model, found = loaded(
        auto_class, folder, use_safetensors=True, output_loading_info=True, **settings
    )
    for keys, wrong in (
        ("missing_keys", "lacks the weights"),
        ("unexpected_keys", "holds weights that the model does not have:"),
        ("mismatched_keys", "holds weights of another shape than config.json says:"),
        ("error_msgs", "has weights that cannot be read:"),
    ):
        names = [key if isinstance(key, str) else str(key[0]) for key in found.get(keys) or ()]
        if odd := sorted(name for name in names if not set(name.split(".")[:2]) & set(heads)):
            raise InputError(
                f"{folder} {wrong} {', '.join(odd[:3])}{', ...' * (len(odd) > 3)} ({len(odd)} in "
                "all); give the folder of the whole model, as save_pretrained makes it."
            )
    return model


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids that end an answer: the generation config's list, else the model's, else the tokenizer's.

    Raises `InputError` where the model declares none, or something other than token ids.
    """
    for declared in (
        model.generation_config.eos_token_id if model.generation_config else None,
        getattr(model.config, "eos_token_id", None),
        tokenizer.eos_token_id,
    ):
        if declared is not None:
            ids = declared if isinstance(declared, list) else [declared]
            if not all(isinstance(one, int) for one in ids):
                raise InputError(
                    f"{model.name_or_path}: its eos_token_id {declared!r} is not a token id or a "
                    f"list of them; correct it in {GENERATION_CONFIG} or config.json."
                )
            return sorted(set(ids))
    raise InputError(
        f"{model.name_or_path} declares no end-of-sequence token; add eos_token_id to its "
        f"{GENERATION_CONFIG}."
    )


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the tokens that are marks, not text: those that decoding an answer leaves out."""
    added = {key for key, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(added | set(tokenizer.all_special_ids))
