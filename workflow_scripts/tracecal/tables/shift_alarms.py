"""How soon the monitors and a window notice that traffic turned to another task."""

import polars as pl

from tracecal.analyse.shift_alarms import AFTER, BEFORE, KOLMOGOROV, MONITORS, WINDOW
from tracecal.tables.phrases import marked
from tracecal.tables.settings import Frames, Settings
from tracecal.watch.monitors import Promise
from tracecal.writers.table import Column, Table

UNCHANGED = "no change"
NEVER = "†"
NOTHING = "No task of the main study has answers that a calibrator of TRACE+ leaves."
EXPLAINED = (
    "False: streams with an alarm before the turn, or ever where nothing changes. Delay: answers "
    f"until the alarm, in the streams without a false one. {NEVER} Not reached within {AFTER:,} "
    "answers. Errors kept: wrong ones among the answers kept from the turn to the monitors' alarm, "
    "at the smallest target error rate that the calibrator guarantees; without one, nothing is "
    "kept. "
)
VALUES = ("false_alarms", "noticed", "delay_median", "delay_90")


def table(frames: Frames, settings: Settings) -> Table:
    """From `shift_alarms`: a row per task and task that it turns to, methods side by side."""
    found = frames["shift_alarms"]
    keys = ["model", "task", "turned_to"]
    monitors = found.filter(method=MONITORS)
    window = found.filter(method=KOLMOGOROV).select(
        *keys, *(pl.col(name).alias(f"window_{name}") for name in VALUES)
    )
    turned = pl.col("turned_to").replace(settings.tasks)
    rows = (
        monitors.join(window, on=keys, how="left", maintain_order="left")
        .drop("model", "method")
        .with_columns(
            label=pl.col("task").replace(settings.tasks),
            turned_to_label=pl.when(pl.col("task") == pl.col("turned_to"))
            .then(pl.lit(UNCHANGED))
            .otherwise(turned),
        )
    )
    tasks = found["task"].unique().sort().to_list()
    return Table(
        frame=rows.with_columns(**settings.scope(tasks)),
        columns=_columns(),
        footnotes=() if rows.height else (NOTHING,),
        notes=(EXPLAINED + _about(found),) if rows.height else (),
    )


def _columns() -> tuple[Column, ...]:
    return (
        Column(("label",), "Calibrated on", align="left"),
        Column(("turned_to_label",), "Turns to", align="left"),
        *(
            column
            for prefix, group in (("", "Monitors"), ("window_", f"Window of {WINDOW}"))
            for column in (
                Column((f"{prefix}false_alarms",), "False", group, decimals=2),
                *(
                    Column(
                        (f"{prefix}{name}",),
                        label,
                        group,
                        decimals=0,
                        mark=_unreached(prefix, name),
                    )
                    for name, label in (("delay_median", "Median"), ("delay_90", "90 %"))
                ),
            )
        ),
        Column(("error_rate",), "Target", "Errors kept", decimals=2),
        Column(("kept_error",), "Found", "Errors kept", decimals=2),
    )


def _unreached(prefix: str, name: str) -> pl.Expr:
    """Marks a delay that was not reached where something changed."""
    changed = pl.col("task") != pl.col("turned_to")
    return marked((changed & pl.col(f"{prefix}{name}").is_null(), NEVER))


def _about(found: pl.DataFrame) -> str:
    return (
        f"{found['repetitions'].max()} streams each, which turn after {BEFORE:,} answers. The "
        "monitors may raise a false alarm once in "
        f"{Promise().answers_per_alarm:,} answers on average; the window's limit is the lowest "
        "at which it raises no more of them than the monitors where nothing changes."
    )
