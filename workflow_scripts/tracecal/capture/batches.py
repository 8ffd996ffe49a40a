"""Batches of prompts of similar length, which are halved when memory runs out."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import distributed

from tracecal.errors import InputError
from tracecal.io.journal import Row
from tracecal.io.log import LOGGER
from tracecal.io.progress import progress_bar

Prompt = dict[str, Any]
Keep = Callable[[list[Row]], None]  # called with a batch's rows as soon as they are finished
Result = TypeVar("Result")


class NotFiniteError(ArithmeticError):
    """Numbers of the model are NaN or infinite for the prompt at `index` of a batch."""

    def __init__(self, index: int, where: str):
        super().__init__(where)
        self.index = index


def forget(results: list[Any]) -> None:
    """The default `keep`, which does nothing: finished batches are returned all the same."""


def longest_first(prompts: Iterable[Prompt]) -> list[Prompt]:
    """Order prompts so that memory runs out early, if at all, and a batch has similar lengths."""
    return sorted(prompts, key=lambda row: (-len(row["prompt_token_ids"]), row["example_id"]))


def in_batches(
    prompts: Sequence[Prompt],
    size: int,
    unit: str,
    work: Callable[[list[Prompt]], list[Result]],
    keep: Callable[[list[Result]], None] = forget,
) -> list[Result]:
    """Do `work` on every prompt, longest first, and pass the results of each batch to `keep`.

    When memory runs out, batches stay halved from then on; results depend on the batch by rounding
    only. Raises `InputError` naming the example where a single prompt does not
    fit or the model's numbers are not finite.
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
    """Work in batches like `in_batches`, but let waiting prompts replace finished ones.

    `work` also takes the batch size, and gets `waves` times as many prompts.

    Not all prompts at once: which ones go to `keep` together depends on the prompts and `size`
    alone, so a step that is resumed repeats what it would have done.
    """
    ordered = longest_first(prompts)
    results: list[Result] = []
    begin = 0
    with progress_bar(len(ordered), "decoding", unit) as bar:
        while batch := ordered[begin : begin + size * waves]:
            done = _unless_out_of_memory(partial(work, batch, size), batch)
            if done is not None:
                keep(done)
                results += done
                begin += len(batch)
                bar.update(len(batch))
            elif (size := min(size, len(batch))) > 1:
                # Only outside the except block are the failed attempt's tensors freed.
                torch.cuda.empty_cache()
                size //= 2
                LOGGER.warning("out of memory: continuing with batches of %d", size)
            else:
                raise InputError(
                    f"example {batch[0]['example_id']!r} alone does not fit into the device's "
                    "memory; use a device with more of it, several GPUs ('gpus') or 'quantization'."
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
                "a GPU ran out of memory, and the processes that share a model cannot agree on "
                "smaller batches; lower the model's 'batch_size'."
            ) from error
        return None
    except NotFiniteError as error:
        raise InputError(
            "the model's numbers are NaN or infinite on example "
            f"{batch[error.index]['example_id']!r} ({error}); try another dtype (float16 overflows "
            "in models trained in bfloat16)."
        ) from error


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; on a CPU only PyTorch's message says so."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in str(error) for words in ("not enough memory", "can't allocate memory")
    )
