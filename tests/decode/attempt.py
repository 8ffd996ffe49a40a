"""One attempt at a decoding step, for a process of its own that a test can kill.

Such a process must not be forked from the tests': their threads (torch's, Polars') do not come
along, and a child that waits for one waits for ever.
"""

import contextlib
import gc
import resource
import signal
import time
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from decode.tiny import initialise_model, train_tokenizer
from tracecal.decode.answers import answer_task
from tracecal.decode.batching import Prompt
from tracecal.decode.prompt import ask
from tracecal.decode.record import identity, recorded
from tracecal.decode.traces import TRACES, provenance, write_table
from tracecal.storage.journal import Journal
from tracecal.tasks.asking import Asking

ASKING = Asking(max_new_tokens=24)
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
