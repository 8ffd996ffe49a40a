"""What is no file, or far larger than it looks, is one sentence and never read for ever."""

import os
import sqlite3
import zipfile
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracecal.answers.answers import read_file
from tracecal.answers.labels import read_labels
from tracecal.calibrator.schema import CalibratorFile
from tracecal.errors import InputError
from tracecal.io import parquet_files
from tracecal.io.checksums import checksum_path
from tracecal.io.digests import digest
from tracecal.io.files import read_json, read_parquet, write_json
from tracecal.io.input_files import read_python_table, read_yaml
from tracecal.io.regular_files import read_regular
from tracecal.io.sqlite_files import limit_steps, require_tables
from tracecal.io.traces import read_table
from tracecal.monitoring.database import StateDatabase
from tracecal.monitoring.state import AlarmSettings

READERS = {
    "answers": read_file,
    "calibrator": CalibratorFile.read,
    "labels": read_labels,
    "json": read_json,
    "yaml": read_yaml,
    "parquet": read_parquet,
    "arrow": read_table,
    "table": lambda path: read_python_table(path, "RULES", "rules"),
}


def make_odd(kind, path):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**33 - 1)


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "sparse"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_no_regular_file_is_a_sentence(tmp_path, reader, kind):
    path = tmp_path / "C.json"
    make_odd(kind, path)
    with pytest.raises(InputError, match=r"is not a file; give one|of them written|are allowed"):
        reader(path)


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_checksum_is_a_file_too_and_so_is_what_is_hashed(tmp_path, kind):
    write_json({}, tmp_path / "value.json")
    checksum_path(tmp_path / "value.json").unlink()
    make_odd(kind, checksum_path(tmp_path / "value.json"))
    with pytest.raises(InputError):
        read_json(tmp_path / "value.json")
    make_odd(kind, tmp_path / "weights")
    with pytest.raises(InputError, match="is not a file"):
        digest(tmp_path / "weights")


def test_a_state_is_a_file_of_tables(tmp_path):
    make_odd("pipe", tmp_path / "s.db")
    with pytest.raises(InputError, match="is not a file"):
        StateDatabase(tmp_path / "s.db", "x", AlarmSettings())


def test_a_file_of_the_system_that_has_no_end_is_not_waited_for(tmp_path):
    """By its status it is a regular file of size 0; root may read it, and waits."""
    endless = Path("/proc/kmsg")
    if not os.access(endless, os.R_OK):
        pytest.skip("for root alone")
    for reader in READERS.values():
        with suppress(InputError, OSError):
            assert not reader(endless)
    for name in ("a.jsonl.gz", "a.csv", "a.eval", "weights"):
        (tmp_path / name).symlink_to(endless)
        with suppress(InputError, OSError):
            (digest if name == "weights" else read_file)(tmp_path / name)
    with pytest.raises(InputError):
        StateDatabase(endless, "x", AlarmSettings())


def test_what_a_file_of_the_system_holds_beyond_its_size_is_not_read():
    with pytest.raises(InputError, match="holds no usable answer"):
        read_file("/proc/self/status")
    with pytest.raises(InputError, match="is a file of the system; give a file to write"):
        StateDatabase("/proc/self/status", "x", AlarmSettings())


def test_a_path_with_a_nul_is_a_sentence():
    with pytest.raises(InputError, match="is not a path"):
        read_file("a\0b.jsonl")


def test_a_file_has_a_largest_size(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert read_regular(tmp_path / "a", 100) == b"x" * 100
    with pytest.raises(InputError, match="at most 99 are allowed"):
        read_regular(tmp_path / "a", 99)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n"
SCHEMAS = {
    "view": f"CREATE VIEW texts(place, row) AS {ENDLESS}",
    "trigger": "CREATE TABLE texts (place INTEGER PRIMARY KEY, row BLOB);"
    "CREATE TRIGGER t AFTER INSERT ON texts BEGIN DELETE FROM texts; END",
    "computed": "CREATE TABLE texts (place INTEGER PRIMARY KEY, row BLOB AS (zeroblob(1000000000)))",
    "virtual": "CREATE VIRTUAL TABLE texts USING fts5(place, row)",
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_state_that_computes_its_rows_is_refused(tmp_path, schema):
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
    with pytest.raises(InputError, match="is not a plain table"):
        StateDatabase(path, "x", AlarmSettings())


def test_a_statement_without_end_is_interrupted(monkeypatch):
    monkeypatch.setattr("tracecal.io.sqlite_files.MOST_LOOKS", 10)
    with closing(sqlite3.connect(":memory:")) as connection:
        require_tables(connection, "s.db")
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchone()
        limit_steps(connection)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_parquet_that_unpacks_to_more_than_any_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 5000, pa.int32()), pa.array(["x" * 10**6])
    )
    for column in (texts, pa.array(["x" * 10**4] * 5000)):
        pq.write_table(pa.table({"answer": column}), path)
        monkeypatch.setattr(parquet_files, "MOST_UNPACKED", 2**32 if column is texts else 10**7)
        assert path.stat().st_size < 10**6
        with pytest.raises(InputError, match=r"unpacks to more than"):
            read_file(path)
    pq.write_table(pa.table({"answer": pa.repeat(True, 10_000_001)}), path)
    with pytest.raises(InputError, match=r"holds 10,000,001 rows"):
        read_file(path)


def test_damaged_arrow_files_are_a_sentence_and_never_a_crash(tmp_path):
    """Changed offsets point outside of the file: reading them would end the process."""
    path = tmp_path / "a.arrow"
    table = pa.table(
        {"id": [f"q{n}" for n in range(50)], "logprobs": [[-0.5] * n for n in range(50)]}
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = path.read_bytes()
    start = content.index(table["id"].chunk(0).buffers()[1].to_pybytes()[:100])
    path.write_bytes(content[: start + 40] + b"\xff\xff\xff\x7f" + content[start + 44 :])
    with pytest.raises(InputError, match="cannot be read"):
        read_file(path)


@pytest.mark.parametrize("plan", ['"a text"', "[1]", "5", "null"])
def test_a_log_whose_plan_is_no_object_states_no_settings(tmp_path, plan):
    sample = '{"id": "a", "logprobs": [-0.5], "answer": "b"}'
    (tmp_path / "a.json").write_text(f'{{"plan": {plan}, "samples": [{sample}]}}')
    assert read_file(tmp_path / "a.json").frame.height == 1


@pytest.mark.parametrize("header", ["not json", "[]", "5"])
def test_a_log_whose_header_is_no_object_is_a_sentence(tmp_path, header):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as log:
        log.writestr("header.json", header)
        log.writestr("samples/a.json", "{}")
    with pytest.raises(InputError, match=r"its header\.json is not a JSON object"):
        read_file(tmp_path / "a.eval")


def test_an_encrypted_log_is_a_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as log:
        log.writestr("header.json", "{}")
    content = bytearray((tmp_path / "a.eval").read_bytes())
    for place in (6, content.index(b"PK\x01\x02") + 8):  # the flags of the entry, there twice
        content[place] |= 1
    (tmp_path / "a.eval").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.eval cannot be read .*encrypted"):
        read_file(tmp_path / "a.eval")


def test_a_file_of_holes_is_refused_unread(tmp_path):
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.write(b'{"id": 1}\n')
        file.truncate(2**32)
    with pytest.raises(InputError, match=r"a\.jsonl holds 4,294,967,296 bytes, .* of them written"):
        read_file(tmp_path / "a.jsonl")
