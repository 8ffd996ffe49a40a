"""The file of a decoding step, resumed from what an earlier attempt finished."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tracecal.decode.batching import Keep, Prompt, longest_first
from tracecal.decode.engine import engine_of
from tracecal.decode.traces import provenance, write_table
from tracecal.storage.files import read_checked
from tracecal.storage.journal import Journal

Work = Callable[[list[Prompt], Keep], object]


def record(
    job: Any,
    prompts: Sequence[Prompt],
    schema: pa.Schema,
    policy: str,
    work: Callable[..., object],
    *arguments: object,
    notes: Callable[[pa.Table], dict[str, str]] = lambda table: {},
) -> None:
    """Run a language model on a task's prompts, and write all rows to the output of the rule.

    `job` is the rule's `snakemake`. Its parameters are all that the rows depend on besides the
    prompts and the model: the code's hash, the arguments' values and, read here, `loading`, the
    `seed`, the `engine` where it is not Transformers, and `journal`, the folder of finished
    batches. `work(model, prompts, *arguments, keep=...)` gets the prompts that are not finished,
    and passes each batch's rows to `keep`; where none are left no model is loaded. `notes` returns
    further metadata of the file.
    """
    params, wildcards, output = job.params, job.wildcards, job.output[0]
    # Of 'work/shards/2-of-4/', say, where several jobs share the prompts.
    shard = (wildcards.get("shard") or "").rstrip("/").rpartition("/")[2] or None

    def run(missing: list[Prompt], keep: Keep) -> None:
        on_model = engine_of(params.get("engine"), job.resources.mem_mb)
        how = job.input.model, params.loading, job.resources.gpu
        on_model(work, *how, missing, *arguments, keep=keep)

    revision = read_checked(job.input.revision).strip()
    dtype = params.loading["dtype"]
    metadata = provenance(wildcards.model, revision, dtype, policy, params.seed)
    if engine := params.get("engine"):
        metadata["engine"] = engine
    journal = Journal(params.journal, schema, identity(dict(params.items()), metadata, prompts))
    table = recorded(share_of(prompts, shard), journal, run)
    write_table(table, metadata | notes(table), output)
    if shard is None:
        journal.settle(output)


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
