"""How early one can tell: AUROC after the first tokens, and what stopping there saves."""

import polars as pl

from trace_workflow.analyses.early_doubt import ALL, METRICS, PREFIXES, SAVINGS, TOKENS
from trace_workflow.tables.notes import BEST_OF_COLUMN, BETTER, frame_of, marked, rows_by
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, ranked

SAVED_AFTER = (1, 3, 8)
WORSE = "*"
EXPLAINED = (
    f"{WORSE} Worse than after all tokens: the interval of the difference ({{}}, resampling groups "
    "of answers) excludes zero."
)
CHANGED = (
    "On the answers that did not choose the rules for early stops, the error rate among those kept "
    "differs from that without stops by {} to {} (all rows, 1 to 16 tokens)."
)


def table(frames: Frames, settings: Settings) -> Table:
    """From the analysis of the same name: a row per estimator, means over the tasks."""
    found = frames["early_doubt"].filter(pl.col("task").is_null())
    values = rows_by(found, "estimator", "prefix", "metric")
    rows = []
    for entry in settings.estimators:
        row = {"estimator": entry.id, "label": entry.label}
        for metric in (*METRICS, *SAVINGS):
            for prefix in PREFIXES:
                if (own := values.get((entry.id, prefix, metric))) is None:
                    continue
                ends = ("lost", "lost_low", "lost_high") if metric in METRICS else ()
                row |= {name(metric, prefix, end): own[end or "value"] for end in ("", *ends)}
                row |= {name(metric, prefix, end): own[end] for end in ("low", "high")}
        rows.append(row)
    seen = [str(tokens) for tokens in TOKENS] + [ALL]
    changes = found.filter(metric="error_change")["value"].drop_nulls()
    changed = CHANGED.format(f"{changes.min():+.3f}", f"{changes.max():+.3f}")
    return Table(
        frame=frame_of(rows).with_columns(**settings.scope(settings.studies["main"]["tasks"])),
        columns=(
            Column(("label",), "Method", align="left"),
            *ranked([_auroc(prefix) for prefix in seen]),
            *(_saved(str(tokens)) for tokens in SAVED_AFTER),
        ),
        emphasis=BEST_OF_COLUMN,
        notes=(
            EXPLAINED.format(f"{100 * found['level'].max():g} %"),
            *([changed] if len(changes) else []),
        ),
    )


def name(metric: str, prefix: str, end: str = "") -> str:
    """The column of a metric after a prefix.

    >>> name("auroc", "25%", "low")
    'auroc_after_25pct_low'
    """
    return "_".join(filter(None, [metric, "after", prefix.replace("%", "pct"), end]))


def _auroc(prefix: str) -> Column:
    worse = pl.col(name("auroc", prefix, "lost_low")) > 0
    mark = marked((worse.fill_null(False), WORSE))
    return Column(
        (name("auroc", prefix),), prefix, "AUROC after tokens", better=BETTER["auroc"], mark=mark
    )


def _saved(prefix: str) -> Column:
    key = name("saved", prefix)
    percent = (100 * pl.col(key)).cast(pl.Float64)
    return Column((key,), prefix, "Saved after tokens, %", decimals=0, printed=percent)
