"""No flipped bit, cut or swap of a result goes unnoticed."""

import random
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from support.arrow_files import write_arrow
from tracecal.errors import InputError
from tracecal.io import checksums, seals
from tracecal.io.checksums import MADE_WITH, checksum_path, read_sum
from tracecal.io.files import (
    atomic_folder,
    read_json,
    read_parquet,
    read_sealed,
    write_json,
    write_parquet,
)
from tracecal.io.traces import arrow_metadata, read_arrow

ROWS = [{"example_id": f"e{index}", "value": index / 7} for index in range(50)]
SCHEMA = pa.schema({"example_id": pa.string(), "value": pa.float64()})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    write_parquet(pl.DataFrame(ROWS), folder / "x.parquet")
    write_arrow(ROWS, SCHEMA, {"schema_version": "1"}, folder / "x.arrow")
    return {"parquet": folder / "x.parquet", "arrow": folder / "x.arrow"}


def test_a_result_that_lost_its_checksum_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, model = Path("results/r/audits/m/t.json"), Path("results/r/models/m")
    write_json({"a": 1}, path)
    with atomic_folder(model) as part:
        (part / "config.json").write_text("{}")
    assert read_json(path) == {"a": 1}
    assert read_json(model / "config.json") == {}, "the folder's checksum is its own"
    checksums.require_sum(model)
    for one in (path, model):
        checksum_path(one).unlink()
        with pytest.raises(InputError, match=rf"{one} has lost its checksum.*--force {one}"):
            checksums.require_sum(one)
    checksums.require_sum(path, foreign=True)
    Path("mine.json").write_text('{"a": 2}')
    assert read_json("mine.json") == {"a": 2}, "what is not ours needs none"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_table_of_ours_without_a_checksum_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = Path(f"results/r/x.{kind}")
    path.parent.mkdir(parents=True)
    frame = pl.DataFrame(ROWS)
    frame.write_parquet(path) if kind == "parquet" else frame.write_ipc(path)
    with pytest.raises(InputError, match=rf"{path} cannot be read .it holds no checksum"):
        read_sealed(path)
    path.rename(path.name)
    assert read_sealed(path.name), "what is not ours needs none"


def test_a_checksum_says_what_made_the_result_and_no_bit_of_it_may_flip(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("results/r/audits/m/t.json")
    made = MADE_WITH.set("0123456789abcdef")
    write_json({"a": 1}, path)
    MADE_WITH.reset(made)
    assert read_sum(path)[1:] == ("audits/m/t.json", "0123456789abcdef")
    whole = checksum_path(path).read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        checksum_path(path).write_bytes(flipped)
        with pytest.raises(InputError, match=rf"--force {path}$"):
            read_json(path)
    checksum_path(path).write_bytes(whole.splitlines(keepends=True)[0])
    assert read_json(path) == {"a": 1}, "older results do not say what made them"


def test_a_flipped_bit_of_a_models_weights_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("results/r/models/m")
    with atomic_folder(folder) as part:
        save_file({"weight": np.arange(8, dtype=np.float32)}, part / "model.safetensors")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for place in random.Random(49).sample(range(8 * len(whole)), 100):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        weights.write_bytes(flipped)
        with pytest.raises(InputError, match=rf"--force {folder}$"):
            checksums.require_sum(folder)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_every_single_flipped_bit_is_found(files, kind):
    content = files[kind].read_bytes()
    assert not seals.is_broken(content)
    flipped = bytearray(content)
    for place in range(8 * len(content)):
        flipped[place // 8] ^= 1 << (place % 8)
        assert seals.is_broken(bytes(flipped)), f"bit {place}"
        flipped[place // 8] ^= 1 << (place % 8)


@pytest.mark.parametrize(("kind", "read"), [("parquet", read_parquet), ("arrow", read_arrow)])
def test_a_damaged_file_is_named_with_what_to_do(files, tmp_path, kind, read):
    content = bytearray(files[kind].read_bytes())
    content[len(content) // 3] ^= 4
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(content)
    with pytest.raises(
        InputError,
        match=rf"damaged\.{kind} cannot be read \(its bytes do not match.*Make it again",
    ):
        read(path)


def test_what_was_written_is_what_is_read(files):
    assert read_parquet(files["parquet"]).to_dicts() == ROWS
    assert read_arrow(files["arrow"]).to_dicts() == sorted(ROWS, key=lambda row: row["example_id"])
    assert "schema_version" in arrow_metadata(files["arrow"])


@given(
    text=st.sampled_from(
        [seals.blank("x.parquet")[seals.KEY], seals.KEY, "seal-sha256:" + "a" * 64, "0" * 64]
    )
)
def test_data_that_looks_like_a_seal_is_left_as_it_is(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("hostile")
    rows = [{"example_id": text, "text": text}]
    write_parquet(pl.DataFrame(rows), folder / "x.parquet")
    assert read_parquet(folder / "x.parquet").to_dicts() == rows
    schema = pa.schema({"example_id": pa.string(), "text": pa.string()})
    write_arrow(rows, schema, {"schema_version": "1"}, folder / "x.arrow")
    assert read_arrow(folder / "x.arrow").to_dicts() == rows


def test_a_file_of_others_needs_no_seal(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "theirs.parquet")
    assert read_parquet(tmp_path / "theirs.parquet")["a"].to_list() == [1]


@pytest.mark.parametrize(("kind", "read"), [("parquet", read_parquet), ("arrow", read_arrow)])
def test_a_sound_file_of_another_pair_is_refused(tmp_path, monkeypatch, kind, read):
    monkeypatch.chdir(tmp_path)
    own = Path(f"results/run/scores/m/one.{kind}")
    if kind == "parquet":
        write_parquet(pl.DataFrame(ROWS), own)
    else:
        write_arrow(ROWS, SCHEMA, {"schema_version": "1"}, own)
    assert read(own).height == len(ROWS)
    assert read(tmp_path / own).height == len(ROWS), "from wherever it is read"
    for other in ("run/scores/m/two", "run/scores/n/one", "run/features/m/one"):
        path = Path(f"results/{other}.{kind}")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(own, path)
        with pytest.raises(InputError, match=f"it was made as scores/m/one.{kind}.*--force {path}"):
            read(path)
    renamed = tmp_path / "results/renamed"
    (tmp_path / "results/run").rename(renamed)
    assert read(renamed / f"scores/m/one.{kind}").height == len(ROWS), "a run may be renamed"


def test_no_flipped_bit_of_json_or_of_its_checksum_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("results/run/calibrators/m/task.json")
    write_json({"trace_plus": {"threshold": 0.53}}, path)
    for file in (path, checksum_path(path)):
        content = file.read_bytes()
        for bit in range(8 * len(content)):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << (bit % 8)
            file.write_bytes(flipped)
            with pytest.raises(InputError, match="task"):
                read_json(path)
        file.write_bytes(content)
    assert read_json(path) == {"trace_plus": {"threshold": 0.53}}
    other = path.with_name("other.json")
    shutil.copy(path, other)
    shutil.copy(checksum_path(path), checksum_path(other))
    with pytest.raises(InputError, match=r"it was made as calibrators/m/task\.json"):
        read_json(other)


def test_a_folder_that_changed_is_refused_and_its_files_are_as_readable_as_it(tmp_path):
    folder = tmp_path / "model"
    with atomic_folder(folder) as part:
        (part / "model.safetensors").write_bytes(b"weights")
        (part / "model.safetensors").chmod(0o600)
    assert folder.stat().st_mode & 0o666 == (folder / "model.safetensors").stat().st_mode & 0o777
    checksums.require_sum(folder)
    (folder / "added_tokens.json").touch()
    with pytest.raises(InputError, match=r"model cannot be read \(it does not match its checksum"):
        checksums.require_sum(folder)
    (folder / "added_tokens.json").unlink()
    (folder / "model.safetensors").write_bytes(b"weight5")
    with pytest.raises(InputError, match="it does not match its checksum"):
        checksums.require_sum(folder)


def test_a_file_written_within_a_folder_belongs_to_the_folders_own_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("results/run/work/learned/probe/model")
    with atomic_folder(folder) as part:
        write_json({"units": 3}, part / "settings.json")
    assert read_json(folder / "settings.json") == {"units": 3}
    shutil.copytree(folder, folder.with_name("other"))
    with pytest.raises(InputError, match="in the wrong place"):
        read_json(folder.with_name("other") / "settings.json")
