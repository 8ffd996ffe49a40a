"""Resources that models need, from metadata only: disk space and GPU memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from trace_workflow.config.job_resources import BYTES
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.folders import check_model_folder
from trace_workflow.models.staging.hub import (
    HubSource,
    fetched_json,
    free_bytes,
    missing_bytes,
    model_files,
    read_contents,
)
from tracecal.errors import InputError
from tracecal.io.files import read_json
from tracecal.io.log import LOGGER

CHARACTERS_PER_TOKEN = 3  # in the fixed text of prompts; most tokenizers need fewer tokens
QUESTION_TOKENS, CONTEXT_TOKENS = 128, 2048  # allowance for the fields that rows fill in
GB = 1e9
SCHEMA = {
    "model": pl.String,
    "parameters_billion": pl.Float64,
    "disk_gb": pl.Float64,
    "to_fetch_gb": pl.Float64,
    "weights_gb": pl.Float64,
    "batch_size": pl.Int64,
    "tokens": pl.Int64,
    "cache_gb": pl.Float64,
    "memory_gb": pl.Float64,
}


class ModelFiles(NamedTuple):
    """A model's files: their sizes and what is still to fetch (bytes), parameter counts, config."""

    sizes: Mapping[str, int]
    to_fetch: int
    counted: Mapping[str, int]  # parameters by data type, where the hub knows them
    config: Mapping[str, Any]


def needs(models: Sequence[Mapping[str, Any]], tasks: Mapping[str, str]) -> pl.DataFrame:
    """One row per model: GB on disk and to fetch, GB of weights and KV cache in GPU memory.

    Each of `models` has slug, hub and revision or path, dtype, batch_size and the names of its
    tasks; `tasks` maps a task to its `PromptSettings` as JSON. A value is None where the metadata
    lacks it.
    Raises `InputError` where a model is missing.
    """
    rows = [_row(model, tasks) for model in models]
    to_fetch, free = sum(row["to_fetch_gb"] for row in rows), free_bytes() / GB
    LOGGER.info("all models: %.1f GB to fetch, %.1f GB free", to_fetch, free)
    if to_fetch > free:
        LOGGER.warning("warning: the disk is too small; name a folder on a larger one in HF_HOME")
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def tokens_at_most(asking: PromptSettings) -> int:
    """Tokens of one example's prompt and answer, with an allowance for the fields of rows."""
    turn = len(asking.prompt) / CHARACTERS_PER_TOKEN
    shots = sum(
        turn + len(f"{shot.question}{shot.answer}{shot.context or ''}") / CHARACTERS_PER_TOKEN
        for shot in asking.few_shot
    )
    system = len(asking.system or "") / CHARACTERS_PER_TOKEN
    filled = QUESTION_TOKENS + CONTEXT_TOKENS * ("{context}" in asking.prompt)
    return round(system + shots + turn + filled) + asking.max_new_tokens


def cache_bytes_per_token(config: Mapping[str, Any], dtype: str) -> int | None:
    """Bytes of one token's keys and values in all layers; None where the config lacks them."""
    config = config.get("text_config", config)
    layers, heads = config.get("num_hidden_layers"), config.get("num_attention_heads")
    if not layers or not heads or not config.get("hidden_size"):
        return None
    width = config.get("head_dim") or config["hidden_size"] // heads
    return 2 * layers * (config.get("num_key_value_heads") or heads) * width * BYTES[dtype]


def parameter_count(files: ModelFiles) -> int | None:
    """The hub's count, else derived from the size of the weights and their data type."""
    if files.counted:
        return sum(files.counted.values())
    weights = sum(size for name, size in files.sizes.items() if name.endswith(".safetensors"))
    size = BYTES.get(str(files.config.get("dtype") or files.config.get("torch_dtype")))
    return weights // size if size else None


def _row(model: Mapping[str, Any], tasks: Mapping[str, str]) -> dict[str, Any]:
    files = _of_hub(model) if model["hub"] else _of_folder(Path(model["path"]).expanduser())
    parameters = parameter_count(files)
    dtype, batch = model["dtype"], model["batch_size"]
    tokens = max(
        tokens_at_most(PromptSettings.model_validate_json(tasks[task])) for task in model["tasks"]
    )
    per_token = cache_bytes_per_token(files.config, dtype)
    weights = parameters and parameters * BYTES[dtype] / GB
    cache = per_token and per_token * tokens * batch / GB
    row = {
        "model": model["slug"],
        "parameters_billion": parameters and parameters / 1e9,
        "disk_gb": sum(files.sizes.values()) / GB,
        "to_fetch_gb": files.to_fetch / GB,
        "weights_gb": weights,
        "batch_size": batch,
        "tokens": tokens,
        "cache_gb": cache,
        "memory_gb": weights + cache if weights and cache else None,
    }
    printed = {name: "?" if value is None else value for name, value in row.items()}
    LOGGER.info(
        "%(model)s: %(disk_gb).1f GB on disk, %(to_fetch_gb).1f GB of it to fetch; GPU memory "
        "%(weights_gb).4s GB for weights and %(cache_gb).4s GB for %(batch_size)d answers of at "
        "most %(tokens)d tokens; allow a fifth more for activations",
        printed,
    )
    return row


def _of_hub(model: Mapping[str, Any]) -> ModelFiles:
    contents = read_contents(HubSource("model", model["hub"], model["revision"]))
    try:
        names = model_files(contents)
        config = fetched_json(contents.source, "config.json")
    except InputError as error:
        # Sizes are public even where a licence must be accepted first.
        LOGGER.warning("warning: %s", error)
        names = {name for name in contents.sizes if name.startswith("model")}
        config = {}
    sizes = {name: contents.sizes.get(name, 0) for name in names}
    return ModelFiles(sizes, missing_bytes(contents, names), contents.parameters, config)


def _of_folder(folder: Path) -> ModelFiles:
    check_model_folder(folder)
    sizes = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
    return ModelFiles(sizes, 0, {}, read_json(folder / "config.json"))
