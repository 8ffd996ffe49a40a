"""Which program decodes: Transformers, or another that a model's entry names."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from tracecal.decode.parallel import on_model
from tracecal.errors import InputError


def engine_of(stated: str | None, memory_mb: float) -> Callable[..., Any]:
    """What does work on a model, called as `on_model`, with the engine that is `stated`.

    It is 'vllm 0.32.0', say, a name and a version; null: Transformers. `memory_mb` is the job's.
    Raises `InputError` where another version is installed.
    """
    if stated is None:
        return on_model
    name, _, version = stated.partition(" ")
    engine = import_module(f"tracecal.decode.{name}_engine")
    if (found := engine.installed()) != version:
        raise InputError(
            f"this run decodes with {stated}, and {found or 'none'} is installed: start snakemake "
            f"with '--sdm conda', which makes envs/{name}.yaml, or see docs/engines.md."
        )
    return partial(engine.on_model, memory_mb)
