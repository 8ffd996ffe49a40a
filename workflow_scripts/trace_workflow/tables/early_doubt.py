"""AUROC after the first tokens of an answer, and the tokens that early stops save."""

import polars as pl

from trace_workflow.analyses.early_doubt import ALL, METRICS, PREFIXES, TOKENS
from trace_workflow.analyses.early_stopping import SAVINGS
from trace_workflow.tables.marks import mark_where
from trace_workflow.tables.metric_names import BETTER
from trace_workflow.tables.ranking import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by
from trace_workflow.tables.table import Column, Table

SAVED_AFTER = (1, 3, 8)
WORSE = "*"
WORSE_NOTE = (
    f"{WORSE} Worse than after all tokens: the interval of the difference ({{}}, resampling groups "
    "of answers) excludes zero."
)
CHANGE_NOTE = (
    "On answers that did not choose the stopping rules, early stops change the error rate of kept "
    "answers by {} to {} (all rows, 1 to 16 tokens)."
)


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per estimator, means over the tasks."""
    means = study.frames["early_doubt"].filter(pl.col("task").is_null())
    by_key = rows_by(means, "estimator", "prefix", "metric")
    rows = []
    for entry in study.estimators:
        row = {"estimator": entry.id, "label": entry.label}
        for metric in (*METRICS, *SAVINGS):
            for prefix in PREFIXES:
                if values := by_key.get((entry.id, prefix, metric)):
                    row |= _values(values, metric, prefix)
        rows.append(row)
    changes = means.filter(metric="error_change")["value"].drop_nulls()
    change = CHANGE_NOTE.format(f"{changes.min():+.3f}", f"{changes.max():+.3f}")
    prefixes = [str(tokens) for tokens in TOKENS] + [ALL]
    return Table(
        frame=frame_of(rows).with_columns(**study.scope(study.studies["main"]["tasks"])),
        columns=(
            Column(("label",), "Method", align="left"),
            *rank_columns([_auroc_column(prefix) for prefix in prefixes]),
            *(_saved_column(str(tokens)) for tokens in SAVED_AFTER),
        ),
        emphasis=BEST_OF_COLUMN,
        notes=(
            WORSE_NOTE.format(f"{100 * means['level'].max():g} %"),
            *([change] if len(changes) else []),
        ),
    )


def column_name(metric: str, prefix: str, end: str = "") -> str:
    """The column of a metric after a prefix.

    >>> column_name("auroc", "25%", "low")
    'auroc_after_25pct_low'
    """
    return "_".join(filter(None, [metric, "after", prefix.replace("%", "pct"), end]))


def _values(values: dict, metric: str, prefix: str) -> dict[str, float | None]:
    """The columns of a metric after a prefix; only METRICS are compared with whole answers."""
    ends = ("lost", "lost_low", "lost_high") if metric in METRICS else ()
    names = {"": "value"} | {end: end for end in (*ends, "low", "high")}
    return {column_name(metric, prefix, end): values[key] for end, key in names.items()}


def _auroc_column(prefix: str) -> Column:
    key = column_name("auroc", prefix)
    worse = pl.col(f"{key}_lost_low") > 0
    mark = mark_where((worse.fill_null(False), WORSE))
    return Column((key,), prefix, "AUROC after tokens", better=BETTER["auroc"], mark=mark)


def _saved_column(prefix: str) -> Column:
    key = column_name("saved", prefix)
    percent = (100 * pl.col(key)).cast(pl.Float64)
    return Column((key,), prefix, "Saved after tokens, %", decimals=0, printed=percent)
