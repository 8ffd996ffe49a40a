"""Footnote marks: values that leave out splits, estimators that leave out answers.

Each mark has an expression that puts it into a column, and a note that explains it.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import product

import polars as pl

from trace_workflow.tables.estimator_rows import PAPER_NAMES
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.study_results import Labels, ScoredShares, StudyResults
from trace_workflow.tables.table import Column
from trace_workflow.tables.wording import join_names, note
from tracecal.estimators.estimator import Entry

UNSCORED = "‡"
UNSUPPORTED = "§"
PARTLY = "†"
LEFT_OUT = (
    f"{PARTLY} Undefined in splits whose answers are all correct, all wrong or all without a "
    "score, which the mean leaves out"
)
SCOPE = ("model", "task", "estimator")  # the keys of `ScoredShares`


def mark_where(*marks: tuple[pl.Expr, str]) -> pl.Expr:
    """The marks whose conditions a row meets, joined."""
    return pl.concat_str(
        pl.when(condition).then(pl.lit(mark)).otherwise(pl.lit("")) for condition, mark in marks
    )


def excludes_zero(key: str) -> pl.Expr:
    """Whether the interval from `<key>_low` to `<key>_high` excludes zero; false without one."""
    return ((pl.col(f"{key}_low") > 0) | (pl.col(f"{key}_high") < 0)).fill_null(False)


def mark_partly_undefined(key: str) -> pl.Expr:
    """Marks a mean that leaves out splits in which the value is undefined."""
    return mark_where((pl.col(f"{key}_undefined_splits") > 0, PARTLY))


def explain_partly_undefined(
    parts: Mapping[str, pl.DataFrame], tasks: Labels, metrics: Sequence[str] = METRICS
) -> list[str]:
    """The note on PARTLY, from averages of single tasks; the keys name the scope of each frame."""
    names = []
    for (part, averages), metric in product(parts.items(), metrics):
        by_task = averages.filter(metric=metric).drop_nulls("task").group_by("task")
        largest = by_task.agg(pl.col("undefined", "splits").max()).sort("task")
        undefined = [
            f"{tasks[task]} ({n} of {splits} splits)"
            for task, n, splits in largest.iter_rows()
            if n
        ]
        if undefined:
            names.append(f"{METRIC_NAMES[metric]}{part} on {join_names(undefined)}")
    return note(LEFT_OUT, names)


def is_unscored(
    pairs: Collection[tuple[str, str, str]], estimator_column: str, *scope: str
) -> pl.Expr:
    """Whether the estimator of a row leaves out answers, by `pairs` of model, task and estimator.

    `scope` names the other columns of SCOPE in the rows; without it any pair counts.
    """
    if not pairs:
        return pl.lit(False)
    indices = [SCOPE.index(column) for column in (*scope, "estimator")]
    keys = {"\n".join(pair[index] for index in indices) for pair in pairs}
    key = pl.concat_str(*scope, estimator_column, separator="\n")
    return key.is_in(sorted(keys)).fill_null(False)


def mark_unscored(shares: ScoredShares | None, estimator_column: str, *scope: str) -> pl.Expr:
    """Marks rows whose estimator leaves out answers; columns as in `is_unscored`."""
    return mark_where((is_unscored(shares or {}, estimator_column, *scope), UNSCORED))


def explain_unscored(study: StudyResults, shares: ScoredShares | None = None) -> list[str]:
    """The note on UNSCORED, for `shares` or for all estimators of the study."""
    parts = [
        f"{study.labels[estimator]} on {study.pair_label(model, task)} "
        f"({100 * (1 - share):.1f} % of the answers)"
        for (model, task, estimator), share in (
            study.scored_shares if shares is None else shares
        ).items()
    ]
    return note(f"{UNSCORED} Without a score for some answers", parts)


def name_in_paper(
    table: str, estimator_column: str = "estimator", label_column: str = "label"
) -> pl.Expr:
    """The estimators' names in the paper's table, or else their labels."""
    names = PAPER_NAMES.get(table, {})
    printed = pl.col(estimator_column).replace_strict(names, default=None, return_dtype=pl.String)
    return pl.coalesce(printed, label_column)


def estimator_column(
    table: str,
    entries: Sequence[Entry] = (),
    shares: ScoredShares | None = None,
    heading: str = "Method",
) -> Column:
    """The column of estimators' names.

    It cites the sources of `entries` and marks estimators with `shares` of unscored answers.
    """
    sources = {
        entry.id: entry.citation
        for entry in entries
        if entry.citation and entry.role not in ("trace", "variant")
    }
    citation = pl.col("estimator").replace_strict(sources, default=None, return_dtype=pl.String)
    return Column(
        ("label",),
        heading,
        align="left",
        printed=name_in_paper(table),
        cite=citation if sources else None,
        mark=mark_unscored(shares, "estimator"),
    )
