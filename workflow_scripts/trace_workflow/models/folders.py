"""Model folders: checks, contents, fingerprint and links into the run."""

import os
from collections.abc import Collection
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracecal.errors import InputError, here, listed
from tracecal.io.digests import contents, digest
from tracecal.io.files import atomic_folder, read_json
from tracecal.io.input_files import parsed_json

# How sentence-transformers declares that token states become an embedding.
POOLING = "1_Pooling/config.json"
ADAPTER = "adapter_model.safetensors"
POINTER = b"version https://git-lfs.github.com/spec/"  # what a pointer begins with
MOST_LAYERS = 1000  # several times those of any model; building more would take hours


def _link_target(file: Path, link: Path) -> Path:
    """The target of a link to a file: relative within the workflow's folder, which may be moved."""
    workflow, folder = Path.cwd().resolve(), link.parent.resolve()
    if file.is_relative_to(workflow) and folder.is_relative_to(workflow):
        return Path(os.path.relpath(file, folder))
    return file


def link_model(
    source: str | Path,
    target: str | Path,
    names: Collection[str] | None = None,
    content: str | None = None,
) -> None:
    """Make `target` a folder of links to the files `names` (all where None) of folder `source`.

    Links, because weights are large; a real folder, because Snakemake writes a timestamp into its
    outputs and the user's folder must not change. Raises `InputError` where `source` is not a model
    folder with safetensors weights, or its fingerprint is not `content`.
    """
    source = Path(source).expanduser().resolve()
    check_model_folder(source)
    files = contents(source)
    with atomic_folder(target) as part:
        for name in files.keys() if names is None else files.keys() & names:
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).symlink_to(_link_target(files[name], part / name))
        if content is not None and fingerprint(part) != content:
            raise InputError(
                f"the files of {source} were changed after this run had started; start snakemake "
                "again."
            )


def fingerprint(folder: str | Path) -> str:
    """`sha256:` and the digest of all files that the model is loaded from.

    Subfolders hold further chat templates, or an embedding model's layers. Hidden files, such as
    Snakemake's timestamp in a rule's output folder, do not count.
    """
    return f"sha256:{digest(folder)}"


def checked_fingerprint(folder: str | Path) -> str:
    """The fingerprint of a user's folder; raises `InputError` where it is not a model folder."""
    folder = Path(folder).expanduser()
    check_model_folder(folder)
    return fingerprint(folder)


def require_chat_template(folder: Path) -> None:
    """Raise `InputError` unless the tokenizer in a model's folder has a chat template."""
    if not has_chat_template(folder):
        raise InputError(
            "'chat: true' needs a chat template and its tokenizer has none; leave 'chat' out to "
            "prompt it in plain text."
        )


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer in a model's folder has a chat template."""
    settings = folder / "tokenizer_config.json"
    config = read_json(settings) if settings.is_file() else {}
    return (folder / "chat_template.jinja").is_file() or bool(config.get("chat_template"))


def check_model_folder(folder: Path) -> None:
    """Raise `InputError` unless `folder` holds a model that Transformers loads without its code.

    That is config.json, *.safetensors with the weights, no pointer in place of a file, and no
    broken link.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}{here(folder)}; name the model's.")
    _require_no_pointer(folder)
    settings, weights = folder / "config.json", {*folder.glob("*.safetensors")}
    if not settings.is_file() or weights <= {folder / ADAPTER}:
        _require_no_part(folder)
    if not settings.is_file():
        raise InputError(
            f"there is no model in {folder}: config.json is missing; give the folder that "
            "save_pretrained wrote."
        )
    if (layers := _layers(settings)) > MOST_LAYERS:
        raise InputError(
            f"{settings} says that the model has {layers:,} layers ('num_hidden_layers'); at most "
            f"{MOST_LAYERS:,} are allowed. Restore the file."
        )
    if not weights:
        raise InputError(
            f"{folder} holds no *.safetensors weights; other formats can run code when loaded "
            "and are refused. Convert with model.save_pretrained(folder)."
        )
    _require_no_code(settings)
    for index in folder.glob("*.safetensors.index.json"):
        _require_shards(index)
    # Transformers would silently load a model without them, such as its template or end tokens.
    visible = (path for path in folder.iterdir() if not path.name.startswith("."))
    broken = [path for path in visible if not path.is_file() and not path.is_dir()]
    if broken:
        raise InputError(f"{min(broken)} is not a file, or is a broken link; restore or remove it.")


def _require_no_pointer(folder: Path) -> None:
    """Raise `InputError` where Git LFS left a pointer in place of a file."""
    for path in sorted(filter(Path.is_file, folder.iterdir())):
        with path.open("rb") as file:
            if file.read(len(POINTER)) == POINTER:
                raise InputError(
                    f"{path} is a Git LFS pointer ({path.stat().st_size} bytes) and not the file "
                    f"itself: type git lfs pull in {folder}."
                )


def _require_no_part(folder: Path) -> None:
    """Raise `InputError` where a folder holds an adapter, or a GGUF file, and no whole model."""
    if (settings := folder / "adapter_config.json").is_file():
        base = _settings(settings).get("base_model_name_or_path") or "its base model"
        raise InputError(
            f"{folder} holds an adapter without its base, {base}: load both with peft, and give "
            "the folder that model.merge_and_unload().save_pretrained(folder) writes, with the "
            "tokenizer."
        )
    if files := sorted(folder.glob("*.gguf")):
        raise InputError(
            f"{folder} holds a GGUF file, {files[0].name}, and no model as Transformers saves it: "
            "give the folder that AutoModelForCausalLM.from_pretrained(folder, gguf_file=…)"
            ".save_pretrained(folder) writes, with the tokenizer."
        )


def _require_no_code(settings: Path) -> None:
    """Raise `InputError` where a model is defined by code that came with it alone."""
    config = _settings(settings)
    name = config.get("model_type")
    tables = _architectures() if config.get("auto_map") else ""
    if tables and f'("{name}", ' not in tables:
        raise InputError(
            f"{settings.parent} needs code that came with it ('auto_map' in config.json), which is "
            f"never run, and Transformers itself does not know the model type {name!r}: give a "
            "model that it knows."
        )


@cache
def _architectures() -> str:
    """The source of Transformers' tables of model types, which is read as loading it takes seconds.

    Empty without Transformers, as where jobs run in environments of their own.
    """
    if (spec := find_spec("transformers")) is None or spec.origin is None:
        return ""
    tables = sorted((Path(spec.origin).parent / "models/auto").glob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in tables)


def _require_shards(index: Path) -> None:
    """Raise `InputError` where an index of weights names a file that is not in its folder.

    No fingerprint would cover a file of another folder.
    """
    try:
        listed_files = {*parsed_json(index.read_bytes())["weight_map"].values()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # whatever loads the model says what is wrong with the file
    present = {path.name for path in index.parent.glob("*.safetensors")}
    if missing := sorted(map(str, listed_files - present)):
        raise InputError(
            f"{index} names weights that are not in its folder: {listed(missing)}. Give the whole "
            "model."
        )


def _layers(path: Path) -> int:
    """The number of layers that a model's ``config.json`` states, 0 where it states none."""
    config = _settings(path)
    text_config = config.get("text_config")
    layers = (text_config if isinstance(text_config, dict) else config).get("num_hidden_layers")
    return layers if isinstance(layers, int) else 0


def _settings(path: Path) -> dict[str, Any]:
    """The object in a JSON file; whatever loads the model says what is wrong with another file."""
    try:
        settings = parsed_json(path.read_bytes())
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}
