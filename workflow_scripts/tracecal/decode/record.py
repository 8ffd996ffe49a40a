"""The file of a decoding step, resumed from what an earlier attempt finished."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from tracecal.decode.batching import Keep, Prompt, longest_first
from tracecal.decode.engine import engine_of
from tracecal.decode.traces import provenance, write_table
from tracecal.jobs.step import Step
from tracecal.storage.files import read_checked
from tracecal.storage.journal import Journal

Work = Callable[[list[Prompt], Keep], object]


def record(
    step: Step,
    prompts: Sequence[Prompt],
    schema: pa.Schema,
    policy: str,
    work: Callable[..., object],
    *arguments: object,
    notes: Callable[[pa.Table], dict[str, str]] = lambda table: {},
) -> None:
    """Run a language model on a task's prompts, and write all rows to the step's output.

    The step's settings are all that the rows depend on besides the prompts and the model: the
    code's hash, the arguments' values and, read here, `loading`, the `seed`, the `engine` where it
    is not Transformers, and `journal`, the folder of finished batches. `work(model, prompts,
    *arguments, keep=...)` gets the prompts that are not finished, and passes each batch's rows to
    `keep`; where none are left no model is loaded. `notes` returns further metadata of the file.
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
    """All that a step's rows depend on: its rule's parameters (including the code's hash), its
    file's metadata, and a hash of all prompts of the task.
    """
    digest = hashlib.sha256()
    for prompt in sorted(prompts, key=lambda prompt: prompt["example_id"]):
        digest.update(f"{prompt['example_id']}\x1f{len(prompt['prompt_token_ids'])}\x1f".encode())
        digest.update(array("q", prompt["prompt_token_ids"]).tobytes())
    return {**settings, **metadata, "prompts": digest.hexdigest()}


def share_of(prompts: Sequence[Prompt], shard: str | None) -> list[Prompt]:
    """The prompts of one job of several, or all of them.

    They are dealt out like cards, longest first, so that all jobs take about as long.
    """
    if shard is None:
        return list(prompts)
    number, count = map(int, shard.split("-of-"))
    return longest_first(prompts)[number - 1 :: count]
