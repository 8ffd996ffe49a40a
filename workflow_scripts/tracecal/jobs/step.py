"""What the rule of a decoding step says of its job, in a form that knows no Snakemake."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Step:
    """A job that runs a language model on a task's prompts, or on a share of them."""

    model: str  # its slug
    weights: str  # the folder of its files
    revision: str  # the file that holds its revision
    output: str
    settings: Mapping[str, Any]  # the rule's parameters: what the rows depend on, and the journal
    shard: str | None  # '2-of-4', where several jobs share the prompts
    gpus: int
    memory_mb: float

    @classmethod
    def of(cls, snakemake: Any) -> Self:
        """The step of a rule whose script's own object is `snakemake`."""
        inputs, wildcards, resources = snakemake.input, snakemake.wildcards, snakemake.resources
        return cls(
            model=wildcards.model,
            weights=inputs.model,
            revision=inputs.revision,
            output=snakemake.output[0],
            settings=dict(snakemake.params.items()),
            # Of 'work/shards/2-of-4/'.
            shard=(wildcards.get("shard") or "").rstrip("/").rpartition("/")[2] or None,
            gpus=resources.gpu,
            memory_mb=resources.mem_mb,
        )
