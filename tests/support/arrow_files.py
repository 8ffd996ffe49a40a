"""Files that tests write as the workflow does."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from tracecal.io.traces import write_table


def write_arrow(
    rows: Iterable[Mapping], schema: pa.Schema, metadata: dict[str, str], path: str | Path
) -> None:
    """Write rows as an Arrow file."""
    write_table(pa.Table.from_pylist(list(rows), schema=schema), metadata, path)
