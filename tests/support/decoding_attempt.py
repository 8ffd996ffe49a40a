"""One attempt at a decoding step, for a process of its own that a test can kill.

Such a process must not be forked from the tests': their threads (torch's, Polars') do not come
along, and a child that waits for one waits for ever.
"""

import contextlib
import gc
import itertools
import multiprocessing
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.process import BaseProcess as Process
from pathlib import Path

import polars as pl
import pyarrow as pa

from support.tiny import initialise_model, train_tokenizer
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import answer_task
from trace_workflow.models.prompts import ask
from trace_workflow.models.step import identity, recorded
from tracecal.capture.batches import Prompt
from tracecal.io.journal import Journal
from tracecal.io.traces import TRACES, provenance, write_table

KILLS, RESUMED = 60, 40  # of `make soak`, as docs/background/failures.md says
TESTS = Path(__file__).resolve().parent.parent
ASKING = PromptSettings(max_new_tokens=24)
METADATA = provenance("tiny", "sha256:0", "float32", "greedy", seed=1)
DISK_FULL = 17
# What takes longer than an attempt is done before: looking for pandas, which pyarrow does once, and
# collecting garbage among all that was imported.
pa.array([])
gc.freeze()


@cache
def model_and_prompts():
    tokenizer = train_tokenizer()
    questions = [f"What is {'so ' * (index % 7)}{index}?" for index in range(48)]
    task = pl.DataFrame(
        {
            "example_id": [f"e{index:02}" for index in range(48)],
            "question": questions,
            "context": pl.Series([None] * 48, dtype=pl.String),
        }
    )
    return initialise_model(len(tokenizer), "llama", 0), tokenizer, ask(tokenizer, task, ASKING)


def journal_of(folder: Path) -> Journal:
    return Journal(folder / "journal", TRACES, identity({}, METADATA, model_and_prompts()[2]))


def generate(folder: Path, pause: float = 0.0) -> tuple[int, list[str]]:
    """The step: decode what the journal lacks, write the file, let it stand for the journal.

    How many examples the journal had, and which were decoded; `pause` seconds before each batch
    is kept.
    """
    model, tokenizer, prompts = model_and_prompts()
    journal = journal_of(folder)
    found = sum(prompt["example_id"] in journal for prompt in prompts)
    decoded = []

    def work(missing: list[Prompt], keep) -> None:
        def slowly(rows):
            decoded.extend(row["example_id"] for row in rows)
            time.sleep(pause)
            keep(rows)

        answer_task(model, missing, tokenizer, ASKING, 3, slowly)

    table = recorded(prompts, journal, work)
    write_table(table, METADATA, folder / "traces.arrow")
    journal.settle(folder / "traces.arrow")
    return found, decoded


def generate_with_room(folder: Path, size: int) -> None:
    """The step where no file may grow over `size` bytes; ends the process with DISK_FULL."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    with contextlib.suppress(OSError):
        generate(folder)
        return
    raise SystemExit(DISK_FULL)


@contextlib.contextmanager
def starting() -> Iterator[Callable[..., Process]]:
    """Start a function in a process of its own, which has the libraries loaded but no threads."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["support.decoding_attempt"])

    def start(step: Callable, *arguments: object) -> Process:
        process = server.Process(target=step, args=arguments)
        process.start()
        return process

    # The server finds what to load by this alone.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{TESTS}:{TESTS.parent / 'workflow_scripts'}"
    try:
        yield start
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def journalled(folder: Path) -> int:
    """How many examples are finished, as the next attempt will find them."""
    parts = folder.glob("journal/*/*.arrow")
    tables = [pa.ipc.open_file(part.read_bytes()).read_all() for part in parts]
    return len({example for table in tables for example in table["example_id"].to_pylist()})


def killed(start: Callable[..., Process], folder: Path, kills: int, resumed: int) -> int:
    """Kill the step at random moments, at least `kills` times, `resumed` of them after a batch was
    kept; how many kills there were. Raises `AssertionError` where a file is not that of a step that
    nobody killed.
    """
    whole = folder / "whole"
    start(generate, folder / "first").join()
    started = time.monotonic()
    start(generate, whole).join()
    took = time.monotonic() - started
    expected = (whole / "traces.arrow").read_bytes()
    chance, ended, after_a_batch = random.Random(2026), 0, 0
    for attempt in itertools.count():
        if ended >= kills and after_a_batch >= resumed:
            return ended
        assert attempt < 500
        own = folder / f"attempt{attempt}"
        while not (own / "traces.arrow").exists():
            before = journalled(own)
            process = start(generate, own, chance.choice([0.0, 0.01]))
            process.join(chance.uniform(0.0, 0.9 * took))
            process.kill()
            process.join()
            by_kill = process.exitcode == -signal.SIGKILL
            ended += by_kill
            after_a_batch += by_kill and before > 0
            assert journalled(own) >= before, "what was finished stays finished"
        assert generate(own) == (48, []), "nothing finished is decoded again"
        assert (own / "traces.arrow").read_bytes() == expected
