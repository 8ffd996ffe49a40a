"""A step's file: of what an earlier attempt finished and what is made now."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracecal.decode.batching import Prompt, longest_first
from tracecal.decode.traces import provenance, write_table
from tracecal.storage.files import read_checked
from tracecal.storage.journal import Journal, Row

Keep = Callable[[list[Row]], None]
Work = Callable[[list[Prompt], Keep], object]


@dataclass(frozen=True)
class Step:
    """A job that runs a language model on a task's prompts.

    `revision` is a file that holds the revision of `model`. `settings`, the rule's parameters, are
    all that the rows depend on beside the prompts and the model: the code's hash, what else the
    work is given, and, read here, `loading`'s dtype, the `seed` and `journal`, the folder of
    finished batches. `shard` (such as '2-of-4') says which of several jobs it is.
    """

    model: str
    revision: str
    settings: Mapping[str, Any]
    shard: str | None = None

    def record(
        self,
        output: str,
        prompts: Sequence[Prompt],
        schema: pa.Schema,
        policy: str,
        work: Work,
        notes: Callable[[pa.Table], dict[str, str]] = lambda table: {},
    ) -> None:
        """Have `work` done on the prompts that are not finished; write all rows to `output`.

        `prompts` are the whole task's. `work` hands over the rows of each batch as soon as they
        are finished; where none are missing it is not called, so no model is loaded in vain.
        `notes` are more to say in the file's metadata.
        """
        revision = read_checked(self.revision).strip()
        dtype, seed = self.settings["loading"]["dtype"], self.settings["seed"]
        made = provenance(self.model, revision, dtype, policy, seed)
        made |= {"engine": self.settings["engine"]} if "engine" in self.settings else {}
        place = self.settings["journal"]
        journal = Journal(place, schema, identity(self.settings, made, prompts))
        table = recorded(share_of(prompts, self.shard), journal, work)
        write_table(table, made | notes(table), output)
        if self.shard is None:
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
