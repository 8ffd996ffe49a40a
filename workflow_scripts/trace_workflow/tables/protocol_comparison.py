"""The table of assumptions: what each kind of method needs to score an answer (appendix C)."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.tables.captions import ADDED
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table

COLUMNS = {
    "same": "Same",
    "single": "Single",
    "extra": "Extra",
    "semantic": "Sem.",
    "calibrator": "Calib.",
}

MARKS = {"yes": "✓", "partly": "△", "no": "✗"}
ORDER = ("likelihood_entropy", "beam", "token_sar", "mars", "selfcheckgpt", "semantic_entropy")


def table(frames: Frames, settings: Settings) -> Table:
    """From `settings.more["methods"]`: `method`, `label`, `role`, and a mark for each column.

    A mark is 'yes', 'partly' or 'no'. TRACE's own rows are last, under a rule.
    """
    methods = sorted(settings.more["methods"], key=_place)
    own = [method["method"] for method in methods if method["role"] == "trace"]
    return Table(
        frame=pl.DataFrame(methods).select("method", "label", *COLUMNS),
        columns=(
            Column(("label",), "Method", align="left"),
            *(
                Column((key,), label, printed=pl.col(key).replace_strict(MARKS))
                for key, label in COLUMNS.items()
            ),
        ),
        section=pl.col("method").is_in(own).cast(pl.String),
        added=pl.col("method").is_in(sorted(ADDED["protocol_comparison"])),
        footnotes=(f"{MARKS['yes']} yes, {MARKS['partly']} partly, {MARKS['no']} no.",),
    )


def _place(method: Mapping) -> tuple[bool, int]:
    """TRACE's rows are last; the paper's methods come in its order, before others."""
    order = [*ORDER, method["method"]]
    return method["role"] == "trace", order.index(method["method"])
