"""Killed at any moment, a step goes on where it stopped, and its file is the same in the end."""

import multiprocessing
import random
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decode.attempt import (
    ASKING,
    DISK_FULL,
    METADATA,
    generate,
    generate_with_room,
    journal_of,
    model_and_prompts,
)
from tracecal.decode.record import identity, recorded, share_of
from tracecal.decode.sampling import SAMPLES, sample_task
from tracecal.storage.journal import Journal

KILLS, RESUMED = 60, 40  # as docs/failures.md says
TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def start():
    """Start a function in a process of its own, which has the libraries loaded but no threads."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["decode.attempt"])

    def start(step, *arguments):
        process = server.Process(target=step, args=arguments)
        process.start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        # The server finds what to load by this alone.
        patch.setenv("PYTHONPATH", f"{TESTS}:{TESTS.parent / 'workflow_scripts'}")
        yield start


def test_killed_sixty_times_the_file_is_the_same(start, tmp_path):
    whole = tmp_path / "whole"
    start(generate, tmp_path / "first").join()
    started = time.monotonic()
    start(generate, whole).join()
    took = time.monotonic() - started
    expected = (whole / "traces.arrow").read_bytes()
    chance = random.Random(2026)
    kills = resumed = attempt = 0
    while kills < KILLS or resumed < RESUMED:
        folder = tmp_path / f"attempt{attempt}"
        attempt += 1
        while not (folder / "traces.arrow").exists():
            before = journalled(folder)
            pause = chance.choice([0.0, 0.01])
            process = start(generate, folder, pause)
            process.join(chance.uniform(0.0, 0.9 * took))
            process.kill()
            process.join()
            killed = process.exitcode == -signal.SIGKILL
            kills += killed
            resumed += killed and before > 0
            assert journalled(folder) >= before, "what was finished stays finished"
        found, decoded = generate(folder)
        assert (found, decoded) == (48, []), "nothing finished is decoded again"
        assert (folder / "traces.arrow").read_bytes() == expected
        assert attempt < 500


def journalled(folder):
    """How many examples are finished, as the next attempt will find them."""
    parts = folder.glob("journal/*/*.arrow")
    tables = [pa.ipc.open_file(part.read_bytes()).read_all() for part in parts]
    return len({example for table in tables for example in table["example_id"].to_pylist()})


def test_only_what_is_missing_is_decoded(tmp_path):
    journal = journal_of(tmp_path)
    generate(tmp_path)
    first = (tmp_path / "traces.arrow").read_bytes()
    assert [path.suffix for path in journal.folder.glob("*.arrow")] == [".arrow"]
    (tmp_path / "traces.arrow").unlink()
    assert generate(tmp_path) == (48, [])
    assert (tmp_path / "traces.arrow").read_bytes() == first


@pytest.mark.parametrize(("room", "refused"), [(2900, "a batch"), (20000, "the file")])
def test_a_full_disk_stops_the_step_and_costs_no_finished_batch(start, tmp_path, room, refused):
    """A file-size limit of the operating system stands in for a full disk."""
    expected = tmp_path / "expected"
    generate(expected)
    process = start(generate_with_room, tmp_path / "full", room)
    process.join()
    assert process.exitcode == DISK_FULL
    assert not (tmp_path / "full/traces.arrow").exists()
    kept = journalled(tmp_path / "full")
    found, decoded = generate(tmp_path / "full")
    assert found == kept
    assert (found == 48) == (refused == "the file")
    assert len(decoded) == 48 - found
    assert (tmp_path / "full/traces.arrow").read_bytes() == (expected / "traces.arrow").read_bytes()


def test_samples_of_one_prompt_come_back_together(tmp_path):
    model, tokenizer, prompts = model_and_prompts()
    tables = []
    for cut in (0, 7):
        journal = Journal(tmp_path / str(cut), SAMPLES, {})

        def work(missing, keep):
            sample_task(model, missing, tokenizer, ASKING, 9, 3, 1.0, 1, keep)

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


def test_another_prompt_is_another_identity():
    prompts = model_and_prompts()[2]
    first = identity({"code": "a"}, METADATA, prompts)
    assert first == identity({"code": "a"}, METADATA, prompts[::-1])
    changed = [prompts[0] | {"prompt_token_ids": [5]}, *prompts[1:]]
    assert first != identity({"code": "a"}, METADATA, changed)
    assert first != identity({"code": "b"}, METADATA, prompts)
    assert first != identity({"code": "a"}, METADATA | {"revision": "sha256:1"}, prompts)
