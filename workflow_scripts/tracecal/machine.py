"""What the jobs of a model ask of a machine: of no result, so that no change reruns anything."""

from pydantic import Field, PositiveFloat

from tracecal.schema import Strict
from tracecal.sources import ModelSource


class Machine(Strict):
    """Keys of every model and encoder. Null: what suits a model of some 8 billion parameters, and
    little for one that is trained here.
    """

    gpus: int | None = Field(None, ge=0, description="GPUs of one job; null: 1, trained here: 0")
    memory_gb: PositiveFloat | None = Field(
        None, description="main memory of one job, doubled at each retry; null: 32, trained here: 2"
    )
    hours: PositiveFloat | None = Field(
        None,
        description="time limit of decoding one task, doubled at each retry; other steps get "
        "shares of it; null: 4, trained here: 1",
    )

    def needs(self, source: ModelSource | None) -> "Machine":
        """The same with nothing null, for a model that comes from `source`; null: no model."""
        small = source is None or source.train is not None
        default = {"gpus": 0, "memory_gb": 2, "hours": 1} if small else LARGE
        given = {name: getattr(self, name) for name in default}
        return Machine(**default | {name: one for name, one in given.items() if one is not None})


LARGE = {"gpus": 1, "memory_gb": 32, "hours": 4}
