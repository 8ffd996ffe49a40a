"""The resources that jobs request. They affect no result, so changing them reruns nothing."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, PositiveFloat

from trace_workflow.config.model_source import ModelSource
from tracecal.io.settings import Strict

SMALL = {"gpus": 0, "memory_gb": 2, "hours": 1}
LARGE = {"gpus": 1, "memory_gb": 32, "hours": 4}


class JobResources(Strict):
    """Keys of every model and encoder. The defaults suit a model with about 8 billion
    parameters; a packaged model, which is small, gets less.
    """

    gpus: int | None = Field(
        None, ge=0, description="GPUs per job, which share the model; null: 1, packaged: 0"
    )
    memory_gb: PositiveFloat | None = Field(
        None, description="main memory per job, doubled at each retry; null: 32, packaged: 2"
    )
    hours: PositiveFloat | None = Field(
        None,
        description="time limit for decoding one task, doubled at each retry; other steps get "
        "shares of it; null: 4, packaged: 1",
    )

    def needs(self, source: ModelSource | None) -> "JobResources":
        """These resources with defaults filled in, for a model from `source` (None: no model)."""
        default = SMALL if source is None or source.package else LARGE
        configured = self.model_dump(include=set(default), exclude_none=True)
        return JobResources(**default | configured)


def has_gpu() -> bool:
    """Whether this machine has a GPU. Jobs take turns only then; on CPUs they run in parallel."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def job_requests(
    models: Mapping[str, Any],
    encoders: Any,
    encoder: str | None = None,
    share: float = 1.0,
    most_gpus: float = math.inf,
) -> dict[str, Callable[..., float]]:
    """The resources that a job requests which runs its model or, where it is given, an `encoder`.

    Twice as much memory and time at each retry; `share` is the job's part of the model's hours.
    Batch size and number of GPUs are resources, not parameters: they change no result. One machine
    lends its GPUs to one job at a time (profiles/default); SLURM counts them.
    """

    def model(wildcards: Any) -> Any:
        return getattr(encoders, encoder) if encoder else models[wildcards.model]

    def needs(wildcards: Any) -> JobResources:
        run = model(wildcards) or JobResources()
        return run.needs(getattr(run, "source", None))

    def gpus(wildcards: Any) -> float:
        return min(most_gpus, needs(wildcards).gpus)

    def doubled(amount: float, attempt: int) -> int:
        return math.ceil(amount * 2 ** (attempt - 1))

    return {
        "gpu": gpus,
        "uses_gpus": lambda wildcards: min(int(has_gpu()), gpus(wildcards)),
        "mem_mb": lambda wildcards, attempt: doubled(1000 * needs(wildcards).memory_gb, attempt),
        "runtime": lambda wildcards, attempt: doubled(60 * share * needs(wildcards).hours, attempt),
        "batch_size": lambda wildcards: getattr(model(wildcards), "batch_size", 1),
    }
