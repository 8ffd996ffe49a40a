"""Resources that a model's jobs request. They affect no result, so changing them reruns nothing."""

from pathlib import Path

from pydantic import Field, PositiveFloat

from tracecal.config.sources import ModelSource
from tracecal.schema import Strict

SMALL = {"gpus": 0, "memory_gb": 2, "hours": 1}
LARGE = {"gpus": 1, "memory_gb": 32, "hours": 4}


class JobResources(Strict):
    """Keys of every model and encoder. Null is the default: enough for a model of some 8 billion
    parameters, or little for one that is trained here or came with a package.
    """

    gpus: int | None = Field(
        None, ge=0, description="GPUs of one job, which share its model; null: 1, small: 0"
    )
    memory_gb: PositiveFloat | None = Field(
        None, description="main memory of one job, doubled at each retry; null: 32, small: 2"
    )
    hours: PositiveFloat | None = Field(
        None,
        description="time limit of decoding one task, doubled at each retry; other steps get "
        "shares of it; null: 4, small: 1",
    )

    def needs(self, source: ModelSource | None) -> "JobResources":
        """These resources with defaults filled in, for a model from `source` (None: no model)."""
        default = SMALL if source is None or source.train or source.package else LARGE
        configured = self.model_dump(include=set(default), exclude_none=True)
        return JobResources(**default | configured)


def has_gpu() -> bool:
    """Whether this machine has a GPU. Jobs take turns only then; on CPUs they run in parallel."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
