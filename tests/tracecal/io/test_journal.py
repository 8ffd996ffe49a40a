"""Finished batches come back whole, unmixed and independent of how they were cut."""

import hashlib
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.errors import InputError
from tracecal.io.journal import IDENTITY, Journal
from tracecal.io.regular_files import read_regular

SCHEMA = pa.schema(
    {"example_id": pa.string(), "values": pa.list_(pa.float32()), "text": pa.string()}
)


@pytest.fixture
def journal(tmp_path):
    def opened(**identity):
        return Journal(tmp_path / "journal", SCHEMA, {"code": "abc", "seed": 1} | identity)

    return opened


def rows(*ids, text="x"):
    return [{"example_id": one, "values": [0.1, 2.0], "text": text} for one in ids]


def parts(journal):
    return sorted(journal.folder.glob("*.arrow"))


def as_file(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_what_was_added_is_there_for_the_next_attempt(journal):
    first = journal()
    first.add(rows("b", "a"))
    first.add(rows("c"))
    again = journal()
    assert all(one in again for one in "abc")
    assert "d" not in again
    assert again.table("abc").to_pylist() == first.table("cab").to_pylist()
    assert again.table("a")["example_id"].to_pylist() == ["a"]


def test_jobs_that_share_a_journal_may_begin_at_the_same_moment(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        for attempt in range(30):
            folder, together = tmp_path / f"{attempt}", Barrier(8)

            def begin(_, folder=folder, together=together):
                together.wait()
                return Journal(folder, SCHEMA, {"seed": 1}).folder

            (shared,) = set(pool.map(begin, range(8)))
            assert [path.name for path in shared.iterdir()] == [IDENTITY]


def test_several_rows_of_one_example_keep_their_order(journal):
    one = journal()
    one.add(rows("b", text="1") + rows("a", text="1") + rows("b", text="2"))
    assert one.table("ab")["text"].to_pylist() == ["1", "1", "2"]
    assert one.table("ab")["example_id"].to_pylist() == ["a", "b", "b"]


@given(
    values=st.lists(
        st.tuples(
            st.lists(st.floats(width=32, allow_nan=False) | st.none(), max_size=3) | st.none(),
            st.text(max_size=3) | st.none(),
        ),
        max_size=12,
    ),
    data=st.data(),
)
def test_the_same_rows_give_the_same_bytes_however_they_were_cut(tmp_path_factory, values, data):
    made = [
        {"example_id": f"e{index}", "values": value, "text": text}
        for index, (value, text) in enumerate(values)
    ]
    files = []
    for attempt in range(2):
        order = data.draw(st.permutations(made))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(made)), max_size=4)))
        one = Journal(tmp_path_factory.mktemp("journal"), SCHEMA, {"attempt": attempt})
        for begin, end in zip([0, *cuts], [*cuts, len(made)], strict=True):
            one.add(order[begin:end])
        files.append(as_file(one.table(row["example_id"] for row in made)))
    expected = pa.Table.from_pylist(sorted(made, key=lambda row: row["example_id"]), SCHEMA)
    assert files[0] == files[1] == as_file(expected)


def test_another_making_is_told_and_never_mixed_in(journal, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tracecal"), "propagate", True)
    journal().add(rows("a"))
    with caplog.at_level(logging.WARNING, "tracecal"):
        other = journal(code="def")
    assert "a" not in other
    assert "belong to other settings (code) and are ignored" in caplog.text
    assert "a" in journal(), "and going back finds it again"


@pytest.mark.parametrize("content", ["[]", "5", "null", "[" * 100_000])
def test_an_odd_identity_and_an_odd_part_of_a_fitting_name_end_nothing(journal, content):
    other, first = journal(code="def"), journal()
    (other.folder / IDENTITY).write_text(content)
    part = first.folder / f"{hashlib.sha256(content.encode()).hexdigest()}.arrow"
    part.write_text(content)
    journal().add(rows("a"))
    assert not part.exists() and "a" in journal()
    os.mkfifo(part)
    with pytest.raises(InputError, match="is not a file"):
        journal()


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied"])
def test_a_damaged_part_is_made_again(journal, caplog, monkeypatch, damage):
    monkeypatch.setattr(logging.getLogger("tracecal"), "propagate", True)
    first = journal()
    first.add(rows("a"))
    first.add(rows("b", text="y"))
    path = first._finished["a"]
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"flipped": content, "cut": content[:-9], "emptied": b""}[damage])
    with caplog.at_level(logging.WARNING, "tracecal"):
        again = journal()
    assert path.name in caplog.text
    assert "a" not in again
    assert "b" in again
    again.add(rows("a"))
    assert "a" in journal()


def test_a_part_that_another_job_has_just_settled_is_none(journal, monkeypatch):
    journal().add(rows("a"))
    journal().add(rows("b", text="y"))
    settled, _ = parts(journal())

    def read(path, max_bytes):
        settled.unlink(missing_ok=True)
        return read_regular(path, max_bytes)

    monkeypatch.setattr("tracecal.io.journal.read_regular", read)
    again = journal()
    assert ("a" in again) != ("b" in again)


def test_a_finished_file_stands_for_its_parts(journal, tmp_path):
    one = journal()
    one.add(rows("b"))
    one.add(rows("a"))
    output = tmp_path / "output.arrow"
    output.write_bytes(as_file(one.table("ab").replace_schema_metadata({"made": "by a test"})))
    one.settle(output)
    (whole,) = parts(one)
    assert whole.stem == hashlib.sha256(output.read_bytes()).hexdigest()
    assert whole.samefile(output)
    output.unlink()  # as Snakemake does before it makes an output anew
    again = journal()
    assert as_file(again.table("ab")) == as_file(one.table("ab"))


def test_without_hard_links_the_parts_stay(journal, tmp_path, monkeypatch):
    one = journal()
    one.add(rows("a"))
    before = parts(one)
    (tmp_path / "output.arrow").write_bytes(as_file(one.table("a")))

    def refuse(*_):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    one.settle(tmp_path / "output.arrow")
    assert parts(one) == before
    assert "a" in journal()


def test_a_kill_between_link_and_clean_up_doubles_nothing(journal, tmp_path):
    one = journal()
    one.add(rows("a", "b"))
    kept = {part: part.read_bytes() for part in parts(one)}
    output = tmp_path / "output.arrow"
    output.write_bytes(as_file(one.table("ab").replace_schema_metadata({"made": "by a test"})))
    one.settle(output)
    for part, content in kept.items():
        part.write_bytes(content)
    assert journal().table("ab")["example_id"].to_pylist() == ["a", "b"]


def test_a_journal_says_what_it_belongs_to(journal):
    one = journal(revision="r1")
    assert '"revision": "r1"' in (one.folder / IDENTITY).read_text()
