"""Killed at any moment, a step goes on where it stopped, and its file is the same in the end."""

import os
import random
import resource
import signal
import time

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.decode.answers import answer_task
from tracecal.decode.prompt import ask
from tracecal.decode.record import identity, recorded, share_of
from tracecal.decode.sampling import SAMPLES, sample_task
from tracecal.decode.traces import TRACES, provenance, write_table
from tracecal.journal import Journal
from tracecal.tasks.asking import Asking

ASKING = Asking(max_new_tokens=24)
METADATA = provenance("tiny", "sha256:0", "float32", "greedy", seed=1)
KILLS = 60


@pytest.fixture(scope="module")
def prompts(tokenizer):
    questions = [f"What is {'so ' * (index % 7)}{index}?" for index in range(48)]
    task = pl.DataFrame(
        {
            "example_id": [f"e{index:02}" for index in range(48)],
            "question": questions,
            "context": pl.Series([None] * 48, dtype=pl.String),
        }
    )
    return ask(tokenizer, task, ASKING)


@pytest.fixture(scope="module")
def generate(make_model, tokenizer, prompts):
    """The step: decode what the journal lacks, write the file, let it stand for the journal."""
    model = make_model()

    def run(folder, batch_size=3, pause=0.0):
        journal = Journal(folder / "journal", TRACES, identity({}, METADATA, prompts))
        found = sum(prompt["example_id"] in journal for prompt in prompts)
        decoded = []

        def work(missing, keep):
            def slowly(rows):
                decoded.extend(row["example_id"] for row in rows)
                time.sleep(pause)
                keep(rows)

            answer_task(model, tokenizer, missing, ASKING, batch_size, slowly)

        table = recorded(prompts, journal, work)
        write_table(table, METADATA, folder / "traces.arrow")
        journal.settle(folder / "traces.arrow")
        return found, decoded

    return run


def killed_after(step, seconds):
    """Run `step` in a process of its own and kill it; whether it was still running."""
    child = os.fork()
    if child == 0:
        try:
            step()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_sixty_times_the_file_is_the_same(generate, tmp_path):
    started = time.monotonic()
    whole = tmp_path / "whole"
    generate(whole)
    took = time.monotonic() - started
    expected = (whole / "traces.arrow").read_bytes()
    chance = random.Random(2026)
    kills = resumed = attempt = 0
    while kills < KILLS or resumed < 40:
        folder = tmp_path / f"attempt{attempt}"
        attempt += 1
        while not (folder / "traces.arrow").exists():
            before = journalled(folder)
            pause = chance.choice([0.0, 0.01])
            killed = killed_after(
                lambda folder=folder, pause=pause: generate(folder, pause=pause),
                chance.uniform(0.0, 0.7 * took),
            )
            kills += killed
            resumed += killed and before > 0
            assert journalled(folder) >= before, "what was finished stays finished"
        found, decoded = generate(folder)
        assert (found, decoded) == (48, []), "nothing finished is decoded again"
        assert (folder / "traces.arrow").read_bytes() == expected
        assert attempt < 500
    assert kills >= 50
    assert resumed >= 40


def journalled(folder):
    """How many examples are finished, as the next attempt will find them."""
    parts = folder.glob("journal/*/*.arrow")
    tables = [pa.ipc.open_file(part.read_bytes()).read_all() for part in parts]
    return len({example for table in tables for example in table["example_id"].to_pylist()})


def test_only_what_is_missing_is_decoded(generate, prompts, tmp_path):
    journal = Journal(tmp_path / "journal", TRACES, identity({}, METADATA, prompts))
    generate(tmp_path)
    first = (tmp_path / "traces.arrow").read_bytes()
    assert [path.suffix for path in journal.folder.glob("*.arrow")] == [".arrow"]
    (tmp_path / "traces.arrow").unlink()
    assert generate(tmp_path) == (48, [])
    assert (tmp_path / "traces.arrow").read_bytes() == first


@pytest.mark.parametrize(("room", "refused"), [(2900, "a batch"), (6000, "the file")])
def test_a_full_disk_stops_the_step_and_costs_no_finished_batch(generate, tmp_path, room, refused):
    """A file-size limit of the operating system stands in for a full disk."""
    expected = tmp_path / "expected"
    generate(expected)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        status = 1
        try:
            generate(tmp_path / "full", batch_size=3)
        except OSError:
            status = 17
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 17
    assert not (tmp_path / "full/traces.arrow").exists()
    kept = journalled(tmp_path / "full")
    found, decoded = generate(tmp_path / "full")
    assert found == kept
    assert (found == 48) == (refused == "the file")
    assert len(decoded) == 48 - found
    assert (tmp_path / "full/traces.arrow").read_bytes() == (expected / "traces.arrow").read_bytes()


def test_samples_of_one_prompt_come_back_together(make_model, tokenizer, prompts, tmp_path):
    model = make_model()
    tables = []
    for cut in (0, 7):
        journal = Journal(tmp_path / str(cut), SAMPLES, {})

        def work(missing, keep):
            sample_task(model, tokenizer, missing, ASKING, 9, 3, 1.0, 1, keep)

        if cut:
            recorded(prompts[:cut], journal, work)
        tables.append(recorded(prompts, journal, work))
    assert tables[0]["example_id"].to_pylist() == sorted(
        prompt["example_id"] for prompt in prompts for _ in range(3)
    )
    assert tables[0]["sample"].to_pylist() == [0, 1, 2] * 48
    assert tables[0]["text"].to_pylist() == tables[1]["text"].to_pylist()


@given(count=st.integers(1, 9), lengths=st.lists(st.integers(1, 9), max_size=30))
def test_shards_deal_out_every_prompt_once(count, lengths):
    prompts = [
        {"example_id": f"e{index}", "prompt_token_ids": [1] * length}
        for index, length in enumerate(lengths)
    ]
    shares = [share_of(prompts, f"{number}-of-{count}") for number in range(1, count + 1)]
    dealt = [prompt["example_id"] for share in shares for prompt in share]
    assert sorted(dealt) == sorted(prompt["example_id"] for prompt in prompts)
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_another_prompt_is_another_identity(prompts):
    first = identity({"code": "a"}, METADATA, prompts)
    assert first == identity({"code": "a"}, METADATA, prompts[::-1])
    changed = [prompts[0] | {"prompt_token_ids": [5]}, *prompts[1:]]
    assert first != identity({"code": "a"}, METADATA, changed)
    assert first != identity({"code": "b"}, METADATA, prompts)
    assert first != identity({"code": "a"}, METADATA | {"revision": "sha256:1"}, prompts)
