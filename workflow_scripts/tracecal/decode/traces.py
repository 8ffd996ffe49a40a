"""The Arrow files of the decode room: schemas, writing, and reading with every column checked."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow as pa

from tracecal.errors import InputError, regenerate, require_columns, unreadable
from tracecal.files import written_whole

SCHEMA_VERSION = "1"

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
    """What an Arrow file says of its making: model, decoding policy, seed, library versions."""
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


def write_arrow(
    rows: Sequence[dict[str, object]], schema: pa.Schema, metadata: dict[str, str], path: str | Path
) -> None:
    """Write rows, sorted by example id, as an Arrow IPC file, whole or not at all."""
    ordered = sorted(rows, key=lambda row: row["example_id"])
    table = pa.Table.from_pylist(ordered, schema=schema.with_metadata(metadata))
    with written_whole(path) as part, pa.ipc.new_file(part, table.schema) as writer:
        writer.write_table(table)


def write_decoded(
    rows: Sequence[dict[str, object]],
    schema: pa.Schema,
    path: str | Path,
    policy: str,
    *,
    model: str,
    revision: str | Path,
    dtype: str,
    seed: int,
    **asked: str,
) -> None:
    """Write what a model gave, with its `provenance` and the texts that it was `asked` by.

    `revision` is the file that states the model's.
    """
    stated = Path(revision).read_text().strip()
    metadata = provenance(model, stated, dtype, policy, seed) | asked
    write_arrow(rows, schema, metadata, path)


def read_arrow(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read `columns` (all where null) of an Arrow IPC file.

    Raises `InputError` where the file is cut short, foreign, of another schema version or
    lacks a column.
    """
    table = _read(path)
    stated = (table.schema.metadata or {}).get(b"schema_version", b"none").decode()
    if stated != SCHEMA_VERSION:
        raise InputError(
            f"{path} states schema version {stated}, expected {SCHEMA_VERSION}: it was not written "
            f"by this version of the workflow. {regenerate(path)}"
        )
    require_columns(table.column_names, columns or [], path)
    return pl.from_arrow(table.select(columns or table.column_names))


def read_traces(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read traces and check what every consumer relies on.

    Each answer has T >= 1 tokens and as many finite, non-negative surprisals and entropies.
    Raises `InputError` naming the first example that breaks this.
    """
    frame = read_arrow(path, columns)
    lists = [name for name in ("token_ids", "surprisal", "entropy") if name in frame.columns]
    sound = pl.lit(True)
    for name in lists:
        sound &= (pl.col(name).list.len() >= 1) & (
            pl.col(name).list.len() == pl.col(lists[0]).list.len()
        )
    for name in set(lists) - {"token_ids"}:
        sound &= pl.col(name).list.agg((pl.element().is_finite() & (pl.element() >= 0)).all())
    if (broken := frame.filter(~sound.fill_null(False))).height:
        raise InputError(
            f"{path}: the trace of example {broken['example_id'][0]!r} is empty, of unequal "
            "lengths or holds a value that is not finite and non-negative. "
            f"{regenerate(path)}"
        )
    return frame


def arrow_metadata(path: str | Path) -> dict[str, str]:
    """The key-value metadata of an Arrow IPC file."""
    metadata = _read(path).schema.metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def _read(path: str | Path) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            return reader.read_all()
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
