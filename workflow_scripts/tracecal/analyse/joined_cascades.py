"""The cascades of each two models of a run as one frame."""

from collections.abc import Sequence

import polars as pl

from tracecal.analyse.pairs import Paths
from tracecal.storage.files import read_parquet


def analysis(parts: Paths, *, cascades: Sequence[Sequence[str]]) -> pl.DataFrame:
    """The rows of all `parts`, in the order of `cascades`, values of `small` and `large`."""
    keys = ["small", "large"]
    order = pl.DataFrame(cascades, schema=dict.fromkeys(keys, pl.String), orient="row")
    rows = pl.concat(map(read_parquet, parts))
    return order.join(rows, on=keys, maintain_order="left_right")
