"""Arrow files of traces and beams: schemas, writing, and reading with checks."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow as pa

from tracecal.errors import InputError, regenerate, require_columns, unreadable
from tracecal.io.files import map_sealed
from tracecal.io.journal import sorted_by_example
from tracecal.io.regular_files import atomic_write
from tracecal.io.seals import KEY, blank, seal

SCHEMA_VERSION = "1"
# Metadata key of traces from files: how many answers have no known entropies, and why.
WITHOUT_ENTROPY = "without_entropy"
TRACES = pa.schema(
    {
        "example_id": pa.string(),
        "prompt": pa.string(),
        "prompt_token_ids": pa.list_(pa.int32()),
        "answer": pa.string(),
        "token_ids": pa.list_(pa.int32()),
        "tokens": pa.list_(pa.string()),
        "surprisal": pa.list_(pa.float32()),
        "entropy": pa.list_(pa.float32()),
        "finish_reason": pa.string(),
    }
)
BEAMS = pa.schema(
    {
        "example_id": pa.string(),
        "beam_token_ids": pa.list_(pa.list_(pa.int32())),
        "beam_logprob": pa.list_(pa.float64()),
        "beam_length": pa.list_(pa.int32()),
    }
)


def provenance(model: str, revision: str, dtype: str, policy: str, seed: int) -> dict[str, str]:
    """Metadata on the making of an Arrow file: model, decoding, seed and library versions."""
    libraries = ("torch", "transformers", "tokenizers", "pyarrow")
    return {
        "schema_version": SCHEMA_VERSION,
        "model": model,
        "revision": revision,
        "dtype": dtype,
        "decoding": policy,
        "seed": str(seed),
        "python": platform.python_version(),
        **{library: version(library) for library in libraries},
    }


def write_table(table: pa.Table, metadata: dict[str, str], path: str | Path) -> None:
    """Write rows, sorted by example id, as a sealed Arrow IPC file, atomically."""
    ordered = sorted_by_example(table).replace_schema_metadata(metadata | blank(path))
    with atomic_write(path) as part:
        with pa.ipc.new_file(part, ordered.schema) as writer:
            writer.write_table(ordered)
        seal(part)


def read_arrow(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read `columns` (all where None) of an Arrow IPC file.

    Raises `InputError` where the file is truncated, not of the workflow, of another schema version
    or lacks a column.
    """
    table = read_table(path)
    stated = (table.schema.metadata or {}).get(b"schema_version", b"none").decode()
    if stated != SCHEMA_VERSION:
        raise InputError(
            f"{path} states schema version {stated}, expected {SCHEMA_VERSION}: it was not written "
            f"by this version of the workflow. {regenerate(path)}"
        )
    require_columns(table.column_names, columns or [], path)
    return pl.from_arrow(table if columns is None else table.select(columns))


def read_traces(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read traces and check what every consumer relies on.

    Each answer has T >= 1 tokens and as many finite, non-negative surprisals and entropies;
    entropies may be missing only where the metadata says so. Raises `InputError` naming the first
    example that violates this.
    """
    frame = read_arrow(path, columns)
    lists = [name for name in ("token_ids", "surprisal", "entropy") if name in frame.columns]
    sound = pl.lit(True)
    for name in lists:
        values = pl.col(name).list
        fine = (values.len() >= 1) & (values.len() == pl.col(lists[0]).list.len())
        if name != "token_ids":
            # A list's minimum is NaN only where all values are, its sum where one is.
            fine &= (values.min() >= 0) & values.sum().is_finite() & ~values.contains(None)
        if (
            name == "entropy"
            and frame[name].has_nulls()
            and WITHOUT_ENTROPY in arrow_metadata(path)
        ):
            fine |= pl.col(name).is_null()
        sound &= fine
    if (broken := frame.filter(~sound.fill_null(False))).height:
        raise InputError(
            f"{path}: the trace of example {broken['example_id'][0]!r} is empty, of unequal "
            f"lengths or holds a value that is not finite and non-negative. {regenerate(path)}"
        )
    return frame


def arrow_metadata(path: str | Path) -> dict[str, str]:
    """The key-value metadata of an Arrow IPC file, without its checksum."""
    metadata = read_table(path).schema.metadata or {}
    stated = {key.decode(): value.decode() for key, value in metadata.items()}
    return {key: value for key, value in stated.items() if key != KEY}


def read_table(path: str | Path) -> pa.Table:
    """Map an Arrow IPC file into memory. Raises `InputError` where it is truncated."""
    try:
        with pa.ipc.open_file(pa.BufferReader(map_sealed(path))) as reader:
            return reader.read_all()
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
