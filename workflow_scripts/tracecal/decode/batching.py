"""Work in batches of similar length, smaller ones where memory runs out."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import distributed

from tracecal.errors import InputError
from tracecal.progress import LOGGER, progress_bar
from tracecal.storage.journal import Row

Prompt = dict[str, Any]
Keep = Callable[[list[Row]], None]  # takes the rows of a batch as soon as they are finished
Result = TypeVar("Result")


class NotFiniteError(ArithmeticError):
    """A model gave NaN or infinite numbers for the prompt at `index` of a batch."""

    def __init__(self, index: int, where: str):
        super().__init__(where)
        self.index = index


def forget(results: list[Any]) -> None:
    """Keep nothing of a finished batch beside what is returned."""


def longest_first(prompts: Iterable[Prompt]) -> list[Prompt]:
    """The order in which prompts are worked on: memory runs out early, and lengths are alike."""
    return sorted(prompts, key=lambda row: (-len(row["prompt_token_ids"]), row["example_id"]))


def in_batches(
    prompts: Sequence[Prompt],
    size: int,
    unit: str,
    work: Callable[[list[Prompt]], list[Result]],
    keep: Callable[[list[Result]], None] = forget,
) -> list[Result]:
    """The results of `work` on every prompt, the longest first, each batch handed to `keep`.

    Where the device's memory runs out the batch is halved, and stays so; results depend on the
    batch by rounding only. Raises `InputError` where a single prompt does not fit, or where the
    model's numbers are not finite, naming the example.
    """
    return in_waves(prompts, size, unit, lambda batch, _: work(batch), keep, waves=1)


def in_waves(
    prompts: Sequence[Prompt],
    size: int,
    unit: str,
    work: Callable[[list[Prompt], int], list[Result]],
    keep: Callable[[list[Result]], None] = forget,
    waves: int = 8,
) -> list[Result]:
    """As `in_batches`, but `work` is given `waves` times as many prompts as it may work on at
    once, which is its other argument: the ones that wait take the places of finished ones.

    Not the whole task: what is handed to `keep` together is fixed by the prompts and `size`, so
    that a step which goes on after an interruption does what it would have done.
    """
    ordered = longest_first(prompts)
    results: list[Result] = []
    place = 0
    with progress_bar(len(ordered), "decoding", unit) as bar:
        while batch := ordered[place : place + size * waves]:
            done = _unless_out_of_memory(partial(work, batch, size), batch)
            if done is not None:
                keep(done)
                results += done
                place += len(batch)
                bar.update(len(batch))
            elif (size := min(size, len(batch))) > 1:
                # Outside the except block, where the failed attempt's tensors are free again.
                torch.cuda.empty_cache()
                size //= 2
                LOGGER.warning("out of memory: going on with batches of %d", size)
            else:
                raise InputError(
                    f"the device's memory does not hold example {batch[0]['example_id']!r} on its "
                    "own; use a device with more memory, several (gpus), or "
                    "quantization."
                )
    return results


def _unless_out_of_memory(
    work: Callable[[], list[Result]], batch: list[Prompt]
) -> list[Result] | None:
    try:
        return work()
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError too
        if not _is_out_of_memory(error):
            raise
        if distributed.is_available() and distributed.is_initialized():
            raise InputError(
                "the memory of a GPU ran out, and the processes that share a model cannot agree on "
                "smaller batches: lower its batch_size."
            ) from error
        return None
    except NotFiniteError as error:
        raise InputError(
            f"the model's numbers are NaN or infinite on example "
            f"{batch[error.index]['example_id']!r} ({error}); try another dtype (float16 overflows "
            "in models trained in bfloat16)."
        ) from error


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: on a CPU, Torch says so in words alone."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in str(error) for words in ("not enough memory", "can't allocate memory")
    )
