"""The table of assumptions: what each kind of method needs to score an answer (appendix C)."""

import polars as pl

from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Column, Table

COLUMNS = {
    "same": "Same",
    "single": "Single",
    "extra": "Extra",
    "semantic": "Sem.",
    "calibrator": "Calib.",
}


def table(frames: Frames, settings: Settings) -> Table:
    """From `settings.more["methods"]`: `method`, `label`, `role`, and a mark for each column.

    A mark is 'yes', 'partly' or 'no'. TRACE's own rows stand last, under a rule.
    """
    methods = sorted(settings.more["methods"], key=lambda one: one["role"] == "trace")
    own = [one["method"] for one in methods if one["role"] == "trace"]
    return Table(
        name="protocol_comparison",
        title=settings.title,
        caption=settings.caption,
        frame=pl.DataFrame(methods).select("method", "label", *COLUMNS),
        columns=(
            Column(("label",), "Method", align="left"),
            *(Column((key,), label) for key, label in COLUMNS.items()),
        ),
        section=pl.col("method").is_in(own).cast(pl.String),
        wide=False,
    )
