"""A step's file: of what an earlier attempt finished and what is made now."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracecal.decode.batching import Keep, Prompt, longest_first
from tracecal.decode.engine import engine_of
from tracecal.decode.traces import provenance, write_table
from tracecal.storage.files import read_checked
from tracecal.storage.journal import Journal

Work = Callable[[list[Prompt], Keep], object]


@dataclass(frozen=True)
class Step:
    """A rule that runs a language model on a task's prompts; `job` is its script's `snakemake`.

    The rule's parameters are all that the rows depend on beside the prompts and the model: the
    code's hash, what else the work is given, and, read here, `loading`, the `seed`, the `engine`
    where it is not Transformers, and `journal`, the folder of finished batches.
    """

    job: Any

    def on_model(self, work: Callable[..., Any], *given: object, **own: object) -> Any:
        """`work(model, *given, **own)`; see `tracecal.decode.parallel`."""
        params, resources = self.job.params, self.job.resources
        run = engine_of(params.get("engine"), resources.mem_mb)
        return run(work, self.job.input.model, params.loading, resources.gpu, *given, **own)

    def record(
        self,
        prompts: Sequence[Prompt],
        schema: pa.Schema,
        policy: str,
        work: Work,
        notes: Callable[[pa.Table], dict[str, str]] = lambda table: {},
    ) -> None:
        """Have `work` done on the prompts that are not finished; write all rows to the output.

        `prompts` are the whole task's. `work` hands over the rows of each batch as soon as they
        are finished; where none are missing it is not called, so no model is loaded in vain.
        `notes` are more to say in the file's metadata.
        """
        params, wildcards, output = self.job.params, self.job.wildcards, self.job.output[0]
        shard = wildcards.get("shard")  # such as '2-of-4', where several jobs share the prompts
        revision = read_checked(self.job.input.revision).strip()
        dtype = params.loading["dtype"]
        made = provenance(wildcards.model, revision, dtype, policy, params.seed)
        if engine := params.get("engine"):
            made["engine"] = engine
        settings = dict(params.items())
        journal = Journal(params.journal, schema, identity(settings, made, prompts))
        table = recorded(share_of(prompts, shard), journal, work)
        write_table(table, made | notes(table), output)
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
    """All that a step's rows depend on: its rule's parameters (the code's hash among them),
    what its file says of its making, and a hash of every prompt of the task.
    """
    digest = hashlib.sha256()
    for prompt in sorted(prompts, key=lambda prompt: prompt["example_id"]):
        digest.update(f"{prompt['example_id']}\x1f{len(prompt['prompt_token_ids'])}\x1f".encode())
        digest.update(array("q", prompt["prompt_token_ids"]).tobytes())
    return {**settings, **metadata, "prompts": digest.hexdigest()}


def share_of(prompts: Sequence[Prompt], shard: str | None) -> list[Prompt]:
    """The prompts of one job of several, or all of them.

    Dealt out like cards, the longest first, so that all jobs take about as long.
    """
    if shard is None:
        return list(prompts)
    number, count = map(int, shard.split("-of-"))
    return longest_first(prompts)[number - 1 :: count]
