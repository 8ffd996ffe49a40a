"""A step's rows: those that an earlier attempt finished, and those that are made now."""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from tracecal.decode.batching import Prompt, longest_first
from tracecal.journal import Journal, Row

Keep = Callable[[list[Row]], None]


def recorded(
    prompts: Sequence[Prompt],
    journal: Journal,
    work: Callable[[list[Prompt], Keep], object],
) -> pa.Table:
    """The rows of all `prompts`, sorted by example id.

    `work` is given the prompts that the journal lacks, if any, and hands over the rows of each
    batch as soon as they are finished; so a model that it loads is loaded only when needed.
    """
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
    """The prompts of one job of several: `shard` is such as '2-of-4'; null is all of them.

    Dealt out like cards, the longest first, so that all jobs take about as long.
    """
    if shard is None:
        return list(prompts)
    number, count = map(int, shard.split("-of-"))
    return longest_first(prompts)[number - 1 :: count]
