"""Killed at any moment, a step goes on where it stopped, and its file is the same in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.decoding_attempt import (
    ASKING,
    DISK_FULL,
    METADATA,
    generate,
    generate_with_room,
    journal_of,
    journalled,
    killed,
    model_and_prompts,
    starting,
)
from trace_workflow.models.sampling import SAMPLES, sample_task
from trace_workflow.models.step import identity, recorded, share_of
from tracecal.io.journal import Journal


@pytest.fixture(scope="module")
def start():
    with starting() as start:
        yield start


def test_killed_at_random_moments_the_file_is_the_same(start, tmp_path):
    """One kill at least after a batch is kept; `make soak` kills it sixty times."""
    assert killed(start, tmp_path, kills=2, resumed=1) >= 2


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
