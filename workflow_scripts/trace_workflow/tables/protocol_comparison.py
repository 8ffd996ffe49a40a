"""The table of assumptions: the needs of each kind of method (appendix C)."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table

ASSUMPTIONS = {
    "same": "Same",
    "single": "Single",
    "extra": "Extra",
    "semantic": "Sem.",
    "calibrator": "Calib.",
}
MARKS = {"yes": "✓", "partly": "△", "no": "✗"}
# The paper's methods in its order, and methods beyond its table.
ORDER = ("likelihood_entropy", "beam", "token_sar", "mars", "selfcheckgpt", "semantic_entropy")
ADDED_METHODS = (
    "entropy_sentinel",
    "internal_probe",
    "lars",
    "p_true",
    "trace_profile",
    "verbalized",
)


def table(study: StudyResults) -> Table:
    """From the option `methods`: `method`, `label`, `role`, and a mark for each assumption.

    A mark is 'yes', 'partly' or 'no'. TRACE's rows are last, under a rule.
    """
    methods = sorted(study.options["methods"], key=_place)
    trace = [method["method"] for method in methods if method["role"] == "trace"]
    return Table(
        frame=pl.DataFrame(methods).select("method", "label", *ASSUMPTIONS),
        columns=(
            Column(("label",), "Method", align="left"),
            *(
                Column((key,), label, printed=pl.col(key).replace_strict(MARKS))
                for key, label in ASSUMPTIONS.items()
            ),
        ),
        section=pl.col("method").is_in(trace).cast(pl.String),
        added=pl.col("method").is_in(ADDED_METHODS),
        footnotes=(f"{MARKS['yes']} yes, {MARKS['partly']} partly, {MARKS['no']} no.",),
    )


def _place(method: Mapping) -> tuple[bool, int]:
    """TRACE's rows are last; the paper's methods come in its order, before added ones."""
    order = [*ORDER, method["method"]]
    return method["role"] == "trace", order.index(method["method"])
