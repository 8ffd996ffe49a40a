"""The resources that jobs request. They affect no result, so changing them reruns nothing."""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field, PositiveFloat

from trace_workflow.config.model_source import ModelSource
from tracecal.io.settings import Strict

SMALL = {"gpus": 0, "memory_gb": 2, "hours": 1}
LARGE = {"gpus": 1, "memory_gb": 32, "hours": 4}
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class JobResources(Strict):
    """Keys of every model and encoder. The defaults suit a model with about 8 billion
    parameters; a packaged model, which is small, gets less.
    """

    gpus: int | None = Field(
        None, ge=0, description="GPUs per job, which share the model; null: 1, packaged: 0"
    )
    memory_gb: PositiveFloat | None = Field(
        None,
        description="main memory per job, doubled at each retry; null: what the weights take and a "
        "quarter more, and 2; 32 where they are not here yet; packaged: 2",
    )
    hours: PositiveFloat | None = Field(
        None,
        description="time limit for decoding one task, doubled at each retry; other steps get "
        "shares of it; null: 4, packaged: 1",
    )

    def needs(self, source: ModelSource | None, weights_gb: float | None = None) -> "JobResources":
        """These resources with defaults filled in, for a model from `source` (None: no model).

        `weights_gb` is the memory that its weights take; None: unknown.
        """
        default = SMALL if source is None or source.package else LARGE
        if default is LARGE and weights_gb is not None:
            default = LARGE | {"memory_gb": math.ceil(2 + 1.25 * weights_gb)}
        configured = self.model_dump(include=set(default), exclude_none=True)
        return JobResources(**default | configured)


def loaded_gb(folder: Path, dtype: str | None) -> float | None:
    """The memory that the weights in a model's folder take in `dtype`; None without a folder.

    `dtype` None stands for that of the files; what these do not say counts as float32.
    """
    sizes = [path.stat().st_size for path in folder.glob("*.safetensors")]
    if not sizes:
        return None
    config: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        config = json.loads((folder / "config.json").read_bytes())
    stored = BYTES.get(str(config.get("dtype") or config.get("torch_dtype")), 4)
    return sum(sizes) / 1e9 * BYTES.get(dtype, stored) / stored


def machine_memory_mb() -> int:
    """The main memory of this machine, or of the container that limits this process."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # 'max' is no number
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory // 10**6


def has_gpu() -> bool:
    """Whether this machine has a GPU. Jobs take turns only then; on CPUs they run in parallel."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def job_requests(
    models: Mapping[str, Any],
    encoders: Any,
    folders: Callable[[str, str], Iterable[Path]],
    encoder: str | None = None,
    share: float = 1.0,
    most_gpus: float = math.inf,
) -> dict[str, Callable[..., float]]:
    """The resources that a job requests which runs its model or, where it is given, an `encoder`.

    Twice as much memory and time at each retry; `share` is the job's part of the model's hours.
    Batch size and number of GPUs are resources, not parameters: they change no result. One machine
    lends its GPUs to one job at a time (profiles/default); SLURM counts them. `folders(kind, name)`
    are those where a model or encoder may lie. The job sees its `attempt`.
    """

    def model(wildcards: Any) -> Any:
        return getattr(encoders, encoder) if encoder else models[wildcards.model]

    def needs(wildcards: Any) -> JobResources:
        run = model(wildcards) or JobResources()
        kind, name = ("encoders", encoder) if encoder else ("models", wildcards.model)
        sizes = (loaded_gb(folder, getattr(run, "dtype", None)) for folder in folders(kind, name))
        weights_gb = next((size for size in sizes if size is not None), None)
        return run.needs(getattr(run, "source", None), weights_gb)

    def gpus(wildcards: Any) -> float:
        return min(most_gpus, needs(wildcards).gpus)

    def doubled(amount: float, attempt: int) -> int:
        return math.ceil(amount * 2 ** (attempt - 1))

    return {
        "gpu": gpus,
        "uses_gpus": lambda wildcards: min(int(has_gpu()), gpus(wildcards)),
        "mem_mb": lambda wildcards, attempt: doubled(1000 * needs(wildcards).memory_gb, attempt),
        "runtime": lambda wildcards, attempt: doubled(60 * share * needs(wildcards).hours, attempt),
        "attempt": lambda wildcards, attempt: attempt,
        "batch_size": lambda wildcards: getattr(model(wildcards), "batch_size", 1),
    }
