"""No flipped bit, cut or swap of a result goes unnoticed."""

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal import seal
from tracecal.decode.traces import arrow_metadata, read_arrow
from tracecal.errors import InputError
from tracecal.files import read_parquet, write_parquet
from written import write_arrow

ROWS = [{"example_id": f"e{index}", "value": index / 7} for index in range(50)]
SCHEMA = pa.schema({"example_id": pa.string(), "value": pa.float64()})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    write_parquet(pl.DataFrame(ROWS), folder / "x.parquet")
    write_arrow(ROWS, SCHEMA, {"schema_version": "1"}, folder / "x.arrow")
    return {"parquet": folder / "x.parquet", "arrow": folder / "x.arrow"}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_every_single_flipped_bit_is_found(files, kind):
    content = files[kind].read_bytes()
    assert not seal.is_broken(content)
    flipped = bytearray(content)
    for place in range(8 * len(content)):
        flipped[place // 8] ^= 1 << (place % 8)
        assert seal.is_broken(bytes(flipped)), f"bit {place}"
        flipped[place // 8] ^= 1 << (place % 8)


@pytest.mark.parametrize(("kind", "read"), [("parquet", read_parquet), ("arrow", read_arrow)])
def test_a_damaged_file_is_named_with_what_to_do(files, tmp_path, kind, read):
    content = bytearray(files[kind].read_bytes())
    content[len(content) // 3] ^= 4
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(content)
    with pytest.raises(
        InputError,
        match=rf"damaged\.{kind} cannot be read \(its bytes do not match.*snakemake .* --force",
    ):
        read(path)


def test_what_was_written_is_what_is_read(files):
    assert read_parquet(files["parquet"]).to_dicts() == ROWS
    assert read_arrow(files["arrow"]).to_dicts() == sorted(ROWS, key=lambda row: row["example_id"])
    assert "schema_version" in arrow_metadata(files["arrow"])


@given(text=st.sampled_from([seal.BLANK[seal.KEY], seal.KEY, "seal-sha256:" + "a" * 64, "0" * 64]))
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
