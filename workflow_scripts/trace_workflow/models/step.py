"""A decoding step: its settings, its engine, and its output, resumed from finished batches."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Self, TypeVar

import pyarrow as pa

from trace_workflow.models.parallel import on_model
from tracecal.capture.batches import Keep, Prompt, longest_first
from tracecal.errors import InputError
from tracecal.io.files import read_checked
from tracecal.io.journal import Journal
from tracecal.io.traces import provenance, write_table

T = TypeVar("T")


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


@dataclass(frozen=True)
class DecodingStep:
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
            shard=shard_of(wildcards),
            gpus=resources.gpu,
            memory_mb=resources.mem_mb,
        )


Work = Callable[[list[Prompt], Keep], object]


def shard_of(wildcards: Any) -> str | None:
    """The part of a task that a job does, '2-of-4' of 'work/shards/2-of-4/'; None: all of it."""
    return (wildcards.get("shard") or "").rstrip("/").rpartition("/")[2] or None


def record(
    step: DecodingStep,
    prompts: Sequence[Prompt],
    schema: pa.Schema,
    policy: str,
    work: Callable[..., object],
    *arguments: object,
    notes: Callable[[pa.Table], dict[str, str]] = lambda table: {},
) -> None:
    """Run a language model on a task's prompts, and write all rows to the step's output.

    Besides the prompts and the model, the rows depend on the step's settings alone: the code's
    hash, the arguments' values and, read here, `loading`, `seed`, `engine` (unless it is
    Transformers) and `journal`, the folder of finished batches. `work(model, prompts, *arguments,
    keep=...)` gets the unfinished prompts and passes each batch's rows to `keep`; where every
    prompt is finished, no model is loaded. `notes(table)` returns further metadata of the file.
    """
    settings = step.settings
    engine, loading = settings.get("engine"), settings["loading"]

    def run(missing: list[Prompt], keep: Keep) -> None:
        on_model = engine_of(engine, step.memory_mb)
        on_model(work, step.weights, loading, step.gpus, missing, *arguments, keep=keep)

    revision = read_checked(step.revision).strip()
    metadata = provenance(step.model, revision, loading["dtype"], policy, settings["seed"])
    if engine:
        metadata["engine"] = engine
    journal = Journal(settings["journal"], schema, identity(settings, metadata, prompts))
    table = recorded(share_of(prompts, step.shard), journal, run)
    write_table(table, metadata | notes(table), step.output)
    if step.shard is None:
        journal.settle(step.output)


def recorded(prompts: Sequence[Prompt], journal: Journal, work: Work) -> pa.Table:
    """The rows of all `prompts`, sorted by example id; `work` makes those the journal lacks."""
    missing = [prompt for prompt in prompts if prompt["example_id"] not in journal]
    if missing:
        work(missing, journal.add)
    return journal.table(prompt["example_id"] for prompt in prompts)


def identity(
    settings: Mapping[str, object], metadata: Mapping[str, str], prompts: Sequence[Prompt]
) -> dict[str, object]:
    """What a step's rows depend on: its settings, its file's metadata and the task's prompts.

    The settings are the rule's parameters, the code's hash among them; the prompts are hashed.
    """
    digest = hashlib.sha256()
    for prompt in sorted(prompts, key=lambda prompt: prompt["example_id"]):
        digest.update(f"{prompt['example_id']}\x1f{len(prompt['prompt_token_ids'])}\x1f".encode())
        digest.update(array("q", prompt["prompt_token_ids"]).tobytes())
    return {**settings, **metadata, "prompts": digest.hexdigest()}


def share_of(prompts: Sequence[Prompt], shard: str | None) -> list[Prompt]:
    """The prompts of one of several jobs, or all prompts where `shard` is None.

    They are dealt out like cards, longest first, so that all jobs take about equally long.
    """
    return list(prompts) if shard is None else dealt(longest_first(prompts), shard)


def dealt(rows: Sequence[T], shard: str | None) -> list[T]:
    """Every row that falls to a job where `shard` says of how many; all where it is None."""
    number, count = map(int, shard.split("-of-")) if shard else (1, 1)
    return list(rows[number - 1 :: count])
