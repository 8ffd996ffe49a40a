"""Files appear whole or not at all, and unreadable ones are named."""

import errno
import fcntl
import os
import stat
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tracecal.errors import InputError
from tracecal.io.checksums import MADE_WITH, checksum_path
from tracecal.io.files import (
    DOUBTED,
    atomic_folder,
    read_json,
    read_parquet,
    verify,
    write_json,
    write_parquet,
)
from tracecal.io.regular_files import atomic_write, write_text
from tracecal.io.traces import write_table


def test_an_error_leaves_neither_the_file_nor_a_part_of_it(tmp_path):
    path = tmp_path / "deep" / "table.parquet"
    with pytest.raises(RuntimeError), atomic_write(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert list(path.parent.iterdir()) == []


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "value.json"
    write_json({"old": 1}, path)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_json({"new": 2}, path)
    assert read_json(path) == {"old": 1}
    assert set(tmp_path.iterdir()) == {path, checksum_path(path)}


def test_an_error_names_the_file_and_not_its_temporary_name(tmp_path):
    path = tmp_path / "value.json"
    with pytest.raises(OSError, match=r"'[^']*/value\.json'"), atomic_write(path) as part:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))


FULL = "No space left on device (os error 28)"


# As Python says it, polars, and tokenizers.
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, FULL), OSError(FULL), Exception(FULL)])
def test_a_full_disk_is_said_with_the_folders_name(tmp_path, error):
    said = r"No space .*: '.*results/m'|results/m cannot be written: No space left on device"
    with pytest.raises((OSError, InputError), match=said), atomic_folder(tmp_path / "results/m"):
        raise error
    assert list((tmp_path / "results").iterdir()) == []


def test_a_full_disk_is_said_where_the_checksum_no_longer_fits(tmp_path, monkeypatch):
    path = tmp_path / "value.json"

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tracecal.io.files.write_sum", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*value\.json'"):
        write_json({}, path)


def test_a_killed_jobs_leftover_is_overwritten(tmp_path):
    (tmp_path / ".value.json.part").write_text("half of something longer than what follows")
    write_json([1], tmp_path / "value.json")
    assert {file.name for file in tmp_path.iterdir()} == {"value.json", ".value.json.sha256"}
    assert read_json(tmp_path / "value.json") == [1]


def second_name(path, victim):
    os.link(victim, path)


@pytest.mark.parametrize(
    "occupy",
    [Path.symlink_to, second_name, lambda path, _: os.mkfifo(path), lambda path, _: path.mkdir()],
    ids=["link", "second name", "pipe", "folder"],
)
def test_a_temporary_name_that_is_another_files_is_refused(tmp_path, occupy):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    occupy(tmp_path / ".a.txt.part", victim)
    with pytest.raises(InputError, match=r"\.a\.txt\.part is a link, .*: remove it"):
        write_text("new", tmp_path / "a.txt")
    assert victim.read_text() == "mine" and not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("occupy", [Path.symlink_to, second_name])
def test_a_checksum_is_not_written_to_another_file(tmp_path, occupy):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    occupy(checksum_path(tmp_path / "a.json"), victim)
    write_json([1], tmp_path / "a.json")
    assert victim.read_text() == "mine" and read_json(tmp_path / "a.json") == [1]


def test_of_two_who_write_one_file_the_second_is_refused_and_spoils_nothing(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_write(path) as part:
        part.write_text("whole")
        with pytest.raises(InputError, match=r"a\.txt is being written by another process"):
            write_text("other", path)
    assert path.read_text() == "whole"
    write_text("other", path)
    assert path.read_text() == "other" and list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_the_file_that_it_points_to_is_written(tmp_path):
    there, link = tmp_path / "there" / "a.json", tmp_path / "link.json"
    write_json({"old": 1}, there)
    link.symlink_to(there)
    write_json({"new": 2}, link)
    assert link.is_symlink() and read_json(link) == read_json(there) == {"new": 2}
    assert {path.name for path in there.parent.iterdir()} == {"a.json", ".a.json.sha256"}


def test_a_link_to_nothing_makes_its_file_but_no_folder(tmp_path):
    link = tmp_path / "a.txt"
    link.symlink_to("b.txt")
    write_text("whole", link)
    assert link.is_symlink() and (tmp_path / "b.txt").read_text() == "whole"
    (tmp_path / "c.txt").symlink_to("missing/d.txt")
    with pytest.raises(FileNotFoundError, match=r"missing/d\.txt'$"):
        write_text("whole", tmp_path / "c.txt")


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "a.txt"
    write_text("old", path)
    path.chmod(0o600)
    write_text("new", path)
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("without", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_a_file_system_has_no_locks_files_are_written_without(tmp_path, monkeypatch, without):
    def flock(*_):
        raise OSError(without, os.strerror(without))

    monkeypatch.setattr(fcntl, "flock", flock)
    write_text("whole", tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_nan_is_refused_in_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json([float("nan")], tmp_path / "value.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100)])
def test_an_unreadable_parquet_file_is_named(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    run = Path("results/mine")
    run.mkdir(parents=True)
    for folder, again in ((tmp_path, "Make it again as"), (run, "snakemake --cores all --force")):
        path = folder / "table.parquet"
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"table\.parquet cannot be read.*{again}"):
            read_parquet(path)


def test_a_missing_file_and_a_missing_column_are_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.parquet cannot be read"):
        read_parquet(tmp_path / "absent.parquet")
    write_parquet(pl.DataFrame({"a": [1]}), tmp_path / "table.parquet")
    with pytest.raises(InputError, match=r"lacks the column\(s\) b, c; it has a"):
        read_parquet(tmp_path / "table.parquet", ["a", "b", "c"])
    with pytest.raises(InputError, match=r"lacks the column\(s\) b; it has a"):
        read_parquet(tmp_path / "table.parquet", ["a"], needed=["a", "b"])


def test_only_the_columns_that_are_asked_for_are_read(tmp_path):
    frame = pl.DataFrame({"a": [1], "b": [2], "c": [3]})
    write_parquet(frame, tmp_path / "table.parquet")
    assert read_parquet(tmp_path / "table.parquet", ["c", "a"]).equals(frame.select("c", "a"))
    assert read_parquet(tmp_path / "table.parquet", needed=["a"]).equals(frame)
    assert read_parquet(tmp_path / "table.parquet").equals(frame)


def test_json_cut_short_is_named(tmp_path):
    path = tmp_path / "value.json"
    path.write_text('{"a": ')
    with pytest.raises(InputError, match=r"value\.json cannot be read"):
        read_json(path)


def test_a_full_disk_is_said_with_the_files_name(tmp_path, monkeypatch):
    def full(frame, path, **_):
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(InputError, match=r"table\.parquet cannot be written.*No space left"):
        write_parquet(pl.DataFrame({"a": [1]}), tmp_path / "table.parquet")
    assert list(tmp_path.iterdir()) == []


RUN = Path("results/r")
TABLE, AUDIT, MODEL = RUN / "x/a.parquet", RUN / "audits/m/t.json", RUN / "models/m"
TRACES = RUN / "traces/m/t.arrow"
NOW, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def doubted(tmp_path, monkeypatch):
    """Those of the results of every kind, made with NOW, that are not as `made` says."""
    monkeypatch.chdir(tmp_path)
    made = MADE_WITH.set(NOW)
    write_parquet(pl.DataFrame({"a": [1]}), TABLE)
    write_table(pa.table({"example_id": ["a"]}), {}, TRACES)
    write_json({}, AUDIT)
    with atomic_folder(MODEL) as part:
        write_json({}, part / "config.json")
    MADE_WITH.reset(made)

    def asked(*paths, made=NOW):
        listed = tmp_path / "listed"
        listed.write_text("")
        with monkeypatch.context() as patch:
            patch.setenv(DOUBTED, str(listed))
            assert verify(map(str, paths), made) == made
        return [Path(line) for line in listed.read_text().splitlines()]

    return asked


def test_results_that_other_settings_or_code_made_are_doubted(doubted):
    results = [TABLE, TRACES, AUDIT, MODEL]
    assert doubted(*results) == []
    assert doubted(*results, made=OTHER) == results


@pytest.mark.parametrize("path", [TABLE, TRACES, AUDIT, MODEL / "config.json"])
def test_so_are_results_that_were_edited(doubted, path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    result = MODEL if MODEL in path.parents else path
    assert doubted(result) == [result]


@pytest.mark.parametrize("path", [TABLE, TRACES, AUDIT, MODEL])
def test_and_those_that_are_gone_or_in_the_place_of_another(doubted, path):
    away = path.with_name(f"away{path.suffix}")
    path.rename(away)
    if checksum_path(path).exists():
        checksum_path(path).rename(checksum_path(away))
    assert doubted(path, away) == [path, away]


def test_what_holds_no_hash_must_be_there(doubted):
    page = RUN / "explorer.html"
    assert doubted(page) == [page]
    page.write_text("a page")
    assert doubted(page) == []


def test_nothing_is_read_where_nobody_asks(doubted, monkeypatch):
    monkeypatch.delenv(DOUBTED, raising=False)
    assert verify([str(RUN / "none.parquet")], NOW) == NOW
