"""One model on several GPUs at once: tensor parallelism, one process for each GPU.

Each process holds a slice of every layer, according to the architecture's plan in Transformers,
does the same work and chooses the same tokens; the job's process returns the result.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from transformers import AutoConfig

from trace_workflow.jobs.code_hash import RUNNING, require_code
from tracecal.capture.model import load_model, loaded
from tracecal.io.checksums import require_sum
from tracecal.io.digests import state_of
from tracecal.io.log import LOGGER

# Seconds that the job's process gets to fail by itself after another process failed
GRACE = 30.0
# Long, because the slices of a large model are not read equally fast
JOIN_TIMEOUT = timedelta(hours=2)


def on_model(
    work: Callable[..., Any],
    folder: str | Path,
    loading: Mapping[str, Any],
    gpus: int,
    *arguments: object,
    **local: object,
) -> Any:
    """`work(model, *arguments, **local)` with the model in `folder`, on up to `gpus` local GPUs.

    Several GPUs share every layer where the architecture and its number of heads allow it;
    otherwise each holds some of the layers and they take turns. `work` is a module's function;
    `local` stays in this process. Its `keep`, if any, is called only while the model's files are
    those that were loaded: on a CPU the weights are memory-mapped and change with their file.
    """
    if "keep" in local:
        local["keep"] = _unchanged(folder, local["keep"])
    count = min(gpus, torch.cuda.device_count())
    if count > 1 and _sliceable(folder, loading, count):
        return in_parallel(count, work, folder, loading, *arguments, **local)
    return work(load_model(folder, **loading, across_gpus=count > 1), *arguments, **local)


def _unchanged(folder: str | Path, keep: Callable[[Any], None]) -> Callable[[Any], None]:
    states = [state_of(folder)]

    def checked(rows: Any) -> None:
        if (now := state_of(folder)) != states[-1]:
            require_sum(folder)
            states.append(now)
        keep(rows)

    return checked


def _sliceable(folder: str | Path, loading: Mapping[str, Any], count: int) -> bool:
    config = loaded(AutoConfig, folder).get_text_config()
    heads = (config.num_attention_heads, config.num_key_value_heads or config.num_attention_heads)
    return (
        bool(config.base_model_tp_plan)
        and not loading.get("quantization")
        and all(number % count == 0 for number in heads)
    )


def in_parallel(
    count: int,
    work: Callable[..., Any],
    folder: str | Path,
    loading: Mapping[str, Any],
    *arguments: object,
    **local: object,
) -> Any:
    """As `on_model`, in `count` processes, each with a slice of the model on its own device.

    If another process fails and this one does not, this one exits with status 1, as it would wait
    forever.
    """
    store = distributed.TCPStore("127.0.0.1", 0, count, is_master=True, wait_for_workers=False)
    code = RUNNING.get()
    task = pickle.dumps((store.port, count, code, work, str(folder), dict(loading), arguments))
    processes = [_started(rank, task) for rank in range(1, count)]
    over = threading.Event()
    for process in processes:
        threading.Thread(target=_watch, args=(process, over), daemon=True).start()
    try:
        _join(store, 0, count)
        return work(load_model(folder, **loading, slices=count), *arguments, **local)
    finally:
        over.set()
        for process in processes:
            process.kill()
            process.wait()
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _started(rank: int, task: bytes) -> subprocess.Popen:
    """A process that reads `task` from a pipe, and ends when the pipe closes."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"LOCAL_RANK": str(rank), "PYTHONPATH": paths}
    command = [sys.executable, "-m", __name__, str(rank)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    process.stdin.write(task)
    process.stdin.flush()
    return process


def _watch(process: subprocess.Popen, over: threading.Event) -> None:
    if process.wait() and not over.wait(GRACE):
        LOGGER.error("error: a process that shares the model failed; its message is above")
        os._exit(1)


def _join(store: distributed.Store, rank: int, count: int) -> None:
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if gpu else "gloo",
        store=store,
        rank=rank,
        world_size=count,
        timeout=JOIN_TIMEOUT,
        device_id=torch.device("cuda", rank) if gpu else None,
    )


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Run the work in a process beside the job's, which sends the arguments through a pipe."""
    rank = int(sys.argv[1])
    port, count, code, work, folder, loading, arguments = pickle.load(sys.stdin.buffer)
    if code:
        require_code(code)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _join(distributed.TCPStore("127.0.0.1", port, count, is_master=False), rank, count)
    work(load_model(folder, **loading, slices=count), *arguments)


if __name__ == "__main__":
    main()
