"""A model of the hub -> a folder of links to its files in the hub's cache."""

import shutil
from collections.abc import Collection
from pathlib import Path

from huggingface_hub import constants, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars

from tracecal.errors import InputError
from tracecal.progress import LOGGER, LineBar
from tracecal.stage.folder import POOLING, link_model
from tracecal.stage.hub import Contents, Source, asked, contents
from tracecal.storage.files import read_json

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Data that Transformers reads beside the weights. No code and no pickle is ever fetched.
SETTINGS = frozenset(
    "config.json generation_config.json tokenizer.json tokenizer_config.json tokenizer.model "
    "special_tokens_map.json added_tokens.json vocab.json vocab.txt merges.txt spiece.model "
    f"chat_template.jinja chat_template.json {POOLING}".split()
)
HEADROOM = 2**30  # bytes of the disk that staging leaves free


def stage_model(repository: str, revision: str, target: str | Path) -> str:
    """Fetch a model into the hub's cache, link it into the folder `target`; return its commit.

    Raises `InputError` where the hub does not deliver, the model has no safetensors weights, or
    the disk is too small.
    """
    source = Source("model", repository, revision)
    disable_progress_bars()
    there = contents(source)
    pinned = Source("model", repository, there.commit)
    names = model_files(pinned, there)
    check_disk(repository, missing_bytes(pinned, there, names))
    folder = asked(
        pinned,
        # The names are exact; a pattern such as *.safetensors would fetch second copies of weights.
        lambda: snapshot_download(
            repository,
            revision=there.commit,
            allow_patterns=sorted(names),
            tqdm_class=LineBar,
        ),
    )
    link_model(folder, target, names)
    LOGGER.info("staged %s at commit %s", repository, there.commit)
    return there.commit


def model_files(source: Source, there: Contents) -> set[str]:
    """The files to fetch: settings, tokenizer, and the safetensors weights that belong together.

    Raises `InputError` where there are none.
    """
    names = SETTINGS & there.sizes.keys()
    if "config.json" not in names:
        raise InputError(
            f"model {source.repository} holds no config.json at {source.revision}; it is not a "
            "Transformers model."
        )
    if WEIGHTS in there.sizes:
        return {*names, WEIGHTS}
    if INDEX in there.sizes:
        index = asked(
            source, lambda: hf_hub_download(source.repository, INDEX, revision=source.revision)
        )
        return {*names, INDEX, *read_json(index)["weight_map"].values()}
    others = sorted(name for name in there.sizes if name.endswith((".bin", ".pt", ".pth", ".gguf")))
    raise InputError(
        f"model {source.repository} holds no {WEIGHTS} or {INDEX} at {source.revision}"
        f"{', only ' + ', '.join(others[:3]) if others else ''}; other formats can run code when "
        "loaded and are refused. Convert with model.save_pretrained(folder) and give it as 'path'."
    )


def missing_bytes(source: Source, there: Contents, names: Collection[str]) -> int:
    """How much of the files `names` is not in the hub's cache yet."""
    return sum(
        there.sizes.get(name, 0)
        for name in names
        if not isinstance(
            try_to_load_from_cache(source.repository, name, revision=source.revision), str
        )
    )


def free_bytes() -> int:
    """Free bytes on the disk that the hub's cache is on."""
    folder = Path(constants.HF_HUB_CACHE).expanduser().absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_disk(repository: str, needed: int) -> None:
    """Log how much will be fetched; raise `InputError` where the disk has no room for it."""
    free = free_bytes()
    LOGGER.info("%s: %.2f GB to fetch, %.2f GB free", repository, needed / 1e9, free / 1e9)
    if needed and needed + HEADROOM > free:
        raise InputError(
            f"model {repository} needs {needed / 1e9:.1f} GB more in {constants.HF_HUB_CACHE}, "
            f"where {free / 1e9:.1f} GB are free; make room, or name a folder on a larger disk in "
            "HF_HOME."
        )
