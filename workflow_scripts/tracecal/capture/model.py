"""Models and tokenizers, loaded from their folders."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
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

from tracecal.capture.packed_linear import pack
from tracecal.errors import InputError
from tracecal.io.checksums import require_sum

GENERATION_CONFIG = "generation_config.json"


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer saved in a model folder."""
    return loaded(AutoTokenizer, folder)


def load_model(
    folder: str | Path,
    dtype: str,
    attention: str | None = None,
    quantization: str | None = None,
    threads: int | None = None,
    across_gpus: bool = False,
    slices: int = 1,
) -> PreTrainedModel:
    """The model in `folder`, for inference only, on the GPU where there is one.

    Weights are read from safetensors only and no code that came with them is run. `across_gpus`
    puts its layers on all GPUs, one after the other; of `slices` processes each holds a part of
    every layer (`models.parallel`). `quantization` ('8bit', '4bit') needs bitsandbytes. `threads`
    compute on a CPU; another number changes the last bits of what the model computes.
    Raises `InputError` where the folder does not hold such a model or the extra is missing.
    """
    if threads:
        torch.set_num_threads(threads)
    device = "auto" if across_gpus else "cuda" if torch.cuda.is_available() else None
    settings = {
        "dtype": getattr(torch, dtype),
        "attn_implementation": attention,
        "quantization_config": _quantized(quantization, dtype),
        "device_map": None if slices > 1 else device,
        "distributed_config": DistributedConfig(tp_size=slices) if slices > 1 else None,
    }
    stated = {name: value for name, value in settings.items() if value is not None}
    if (Path(folder) / GENERATION_CONFIG).is_file():
        loaded(GenerationConfig, folder)  # where it is broken, a model is loaded without it
    model = with_all_weights(AutoModelForCausalLM, folder, **stated).eval()
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
    """Load what `auto_class` reads from `folder`, without running code that came with it.

    Raises `InputError` where it cannot be read, or does not match the checksum beside it, if any.
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
    """Load a model; raise `InputError` where a weight is missing from the folder or left over.

    Transformers fills missing weights at random and drops those left over. Only modules in `heads`
    (such as 'classifier') may have either.
    """
    model, report = loaded(
        auto_class, folder, use_safetensors=True, output_loading_info=True, **settings
    )
    for keys, wrong in (
        ("missing_keys", "lacks the weights"),
        ("unexpected_keys", "holds weights that the model does not have:"),
        ("mismatched_keys", "holds weights of another shape than config.json says:"),
        ("error_msgs", "has weights that cannot be read:"),
    ):
        names = [key if isinstance(key, str) else str(key[0]) for key in report.get(keys) or ()]
        if odd := sorted(name for name in names if not set(name.split(".")[:2]) & set(heads)):
            raise InputError(
                f"{folder} {wrong} {', '.join(odd[:3])}{', ...' * (len(odd) > 3)} ({len(odd)} in "
                "all); give the folder of the whole model, as save_pretrained makes it."
            )
    return model
