"""What a file holds decides, and not its times."""

import os
import time

import pytest

from tracecal.io import digests as module
from tracecal.io.digests import REMEMBERED, digest


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Digest a file whose digests are remembered; whether its bytes were read again."""
    token = REMEMBERED.set(str(tmp_path / "digests"))
    monkeypatch.setattr(module, "SETTLED", 0)
    read = []
    original = module.open_without_waiting
    monkeypatch.setattr(
        module, "open_without_waiting", lambda *given: read.append(1) or original(*given)
    )

    def digested(path):
        read.clear()
        return digest(path), bool(read)

    yield digested
    REMEMBERED.reset(token)


def test_bytes_are_read_once_and_again_where_size_or_times_changed(tmp_path, read):
    path = tmp_path / "rows"
    path.write_bytes(b"one")
    first, was_read = read(path)
    assert was_read
    assert read(path) == (first, False)
    os.utime(path)
    assert read(path) == (first, True)
    assert read(path) == (first, False)


def test_other_bytes_of_the_same_size_and_time_are_seen(tmp_path, read):
    path = tmp_path / "rows"
    path.write_bytes(b"one")
    first, _ = read(path)
    before = path.stat()
    time.sleep(0.02)
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    second, was_read = read(path)
    assert was_read and second != first


def test_what_was_changed_just_now_is_not_remembered(tmp_path, read, monkeypatch):
    monkeypatch.setattr(module, "SETTLED", 10**12)
    path = tmp_path / "rows"
    path.write_bytes(b"one")
    assert read(path)[1] and read(path)[1]


def test_a_damaged_note_is_not_believed(tmp_path, read):
    path = tmp_path / "rows"
    path.write_bytes(b"one")
    first, _ = read(path)
    (note,) = (tmp_path / "digests").iterdir()
    content = note.read_bytes()
    for place in range(len(content) - 1):
        flipped = bytearray(content)
        flipped[place] ^= 1
        note.write_bytes(flipped)
        assert read(path)[0] == first


def test_a_folder_is_its_files_names_and_bytes_hidden_ones_left_out(tmp_path):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text("{}")
    (tmp_path / "a").write_text("one")
    before = digest(tmp_path)
    (tmp_path / ".mark").touch()
    assert digest(tmp_path) == before
    (tmp_path / "1_Pooling/config.json").write_text("[]")
    other = digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({before, other, digest(tmp_path)}) == 3


def test_a_link_to_itself_is_an_error_of_the_system(tmp_path):
    (tmp_path / "rows").symlink_to("rows")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        digest(tmp_path / "rows")
