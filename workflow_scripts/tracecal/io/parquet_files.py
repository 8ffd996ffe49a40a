"""Parquet files of users: what they unpack to is measured before they are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from tracecal.errors import InputError

if TYPE_CHECKING:  # slow to load, and not needed at import
    import pyarrow as pa

# A few hundred kilobytes of Parquet can hold more than any memory.
MOST_ROWS, MOST_VALUES, MOST_UNPACKED = 10_000_000, 2**30, 2**32
BATCH = 1000  # rows that are unpacked at once


def require_bounded(content: bytes, path: str | Path) -> None:
    """Raise `InputError` where the content of a Parquet file unpacks to more than MOST_UNPACKED
    bytes, or has too many rows or values."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(pa.BufferReader(content))
    n_rows = file.metadata.num_rows
    groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
    n_values = sum(
        group.column(column).num_values for group in groups for column in range(group.num_columns)
    )
    if n_rows > MOST_ROWS or n_values > MOST_VALUES:
        raise InputError(
            f"{path} holds {n_rows:,} rows of {n_values:,} values; at most {MOST_ROWS:,} rows of "
            f"{MOST_VALUES:,} values are allowed."
        )
    size = 0
    for batch in file.iter_batches(BATCH):
        size += sum(map(_unpacked_size, batch.columns))
        if size > MOST_UNPACKED:
            raise InputError(
                f"{path} unpacks to more than {MOST_UNPACKED / 1e9:.1f} GB; give its rows in "
                "several files, or without the columns that nothing reads."
            )


def _unpacked_size(column: "pa.Array") -> int:
    """Bytes of a column's values; each has its own where they are listed once, in a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column.nbytes
    values = column.dictionary
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    lengths = pc.binary_length(values) if is_text else pa.array([8] * len(values))
    return pc.sum(lengths.take(column.indices)).as_py() or 0
