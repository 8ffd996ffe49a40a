"""The engine of a decoding step: Transformers, or another one by its name and version."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from trace_workflow.models.parallel import on_model
from tracecal.errors import InputError


def engine_of(stated: str | None, memory_mb: float) -> Callable[..., Any]:
    """The engine's counterpart of `parallel.on_model`.

    `stated` is the engine's name and version, such as 'vllm 0.32.0'; None means Transformers.
    `memory_mb` is the job's memory. Raises `InputError` where another version is installed.
    """
    if stated is None:
        return on_model
    name, _, version = stated.partition(" ")
    engine = import_module(f"trace_workflow.models.{name}_engine")
    if (installed := engine.installed()) != version:
        raise InputError(
            f"this run decodes with {stated}, and {installed or 'none'} is installed: start "
            f"snakemake with '--sdm conda', which makes envs/{name}.yaml, or see "
            "docs/guides/vllm.md."
        )
    return partial(engine.on_model, memory_mb)
