"""A model of the hub -> a folder of links to its files in the hub's cache."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from huggingface_hub import constants, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars

from trace_workflow.models.folders import POOLING, link_model
from trace_workflow.models.hub import Contents, Source, contents, request
from tracecal.errors import InputError
from tracecal.io.files import read_json
from tracecal.io.log import LOGGER, LineBar

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Data that Transformers reads besides the weights. No code and no pickle is ever fetched.
SETTINGS = frozenset(
    "config.json generation_config.json tokenizer.json tokenizer_config.json tokenizer.model "
    "special_tokens_map.json added_tokens.json vocab.json vocab.txt merges.txt spiece.model "
    f"chat_template.jinja chat_template.json {POOLING}".split()
)
HEADROOM = 2**30  # bytes that staging leaves free on the disk


def stage_model(repository: str, revision: str, target: str | Path) -> str:
    """Fetch a model into the hub's cache, link it into the folder `target`; return its commit.

    Raises `InputError` where the hub fails, the model has no safetensors weights, or the disk is
    too small.
    """
    disable_progress_bars()
    there = contents(Source("model", repository, revision))
    commit = there.source.revision
    names = model_files(there)
    check_disk(repository, missing_bytes(there, names))
    folder = request(
        there.source,
        # The names are exact; a pattern such as *.safetensors would fetch second copies of weights.
        lambda: snapshot_download(
            repository,
            revision=commit,
            allow_patterns=sorted(names),
            tqdm_class=LineBar,
        ),
    )
    link_model(folder, target, names)
    LOGGER.info("staged %s at commit %s", repository, commit)
    return commit


def model_files(there: Contents) -> set[str]:
    """The files to fetch: settings, tokenizer and one set of safetensors weights.

    Raises `InputError` where there are none.
    """
    _, repository, revision = there.source
    names = SETTINGS & there.sizes.keys()
    if "config.json" not in names:
        raise InputError(
            f"model {repository} holds no config.json at {revision}; it is not a Transformers "
            "model."
        )
    if WEIGHTS in there.sizes:
        return {*names, WEIGHTS}
    if INDEX in there.sizes:
        return {*names, INDEX, *fetched_json(there.source, INDEX)["weight_map"].values()}
    others = sorted(name for name in there.sizes if name.endswith((".bin", ".pt", ".pth", ".gguf")))
    raise InputError(
        f"model {repository} holds no {WEIGHTS} or {INDEX} at {revision}"
        f"{', only ' + ', '.join(others[:3]) if others else ''}; other formats can run code when "
        "loaded and are refused. Convert with model.save_pretrained(folder) and give it as 'path'."
    )


def fetched_json(source: Source, name: str) -> Any:
    """The content of a model's JSON file on the hub."""
    _, repository, revision = source
    return read_json(request(source, lambda: hf_hub_download(repository, name, revision=revision)))


def missing_bytes(there: Contents, names: Collection[str]) -> int:
    """Size of those of the files `names` that are not in the hub's cache yet."""
    _, repository, revision = there.source
    return sum(
        there.sizes.get(name, 0)
        for name in names
        if not isinstance(try_to_load_from_cache(repository, name, revision=revision), str)
    )


def free_bytes() -> int:
    """Free bytes on the disk that the hub's cache is on."""
    folder = Path(constants.HF_HUB_CACHE).expanduser().absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_disk(repository: str, needed: int) -> None:
    """Log how much will be fetched; raise `InputError` where the disk is too small for it."""
    free = free_bytes()
    LOGGER.info("%s: %.2f GB to fetch, %.2f GB free", repository, needed / 1e9, free / 1e9)
    if needed and needed + HEADROOM > free:
        raise InputError(
            f"model {repository} needs {needed / 1e9:.1f} GB more in {constants.HF_HUB_CACHE}, "
            f"where {free / 1e9:.1f} GB are free; make room, or name a folder on a larger disk in "
            "HF_HOME."
        )
