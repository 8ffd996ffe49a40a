"""How often the risk of an answer lies in a part that is wrong, beside chance."""

import polars as pl

from trace_workflow.analyses.localisation import CHANCE, COUNTS, POINTERS
from trace_workflow.tables.captions import note
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table

NAMES = {
    "window": "Window of peak risk",
    "max_surprisal": "Token of highest surprisal",
    "max_entropy": "Token of highest entropy",
    "random_window": "Chance: any window",
    "random_token": "Chance: any token",
    "random_part": "Chance: any part",
    "failing_name": "The part that usually fails",
}
LACKING = {"unanswered": "are left out", "wrong": "count as wrong in the accuracy"}


def table(frames: Frames, settings: Settings) -> Table:
    """From `localisation`: a row per pointer, the best first, for each model and task."""
    found = settings.of_pairs(frames["localisation"])
    order = [*POINTERS, *CHANCE]
    place = pl.col("pointer").replace_strict(order, range(len(order)))
    frame = found.with_columns(label=pl.col("pointer").replace_strict(NAMES)).sort(
        *(settings.in_order(), "task", "value", place),
        descending=[False, False, True, False],
        nulls_last=True,
    )
    level = frame["level"].max()
    return Table(
        frame=frame.select(
            *("model", "task", "pointer", "label", "value", "low", "high", "pointed"),
            *COUNTS,
        ),
        columns=(
            Column(("label",), "Points at", align="left"),
            Column(("value",), "In a wrong part", better="higher"),
            Column(("low", "high"), f"{100 * (level or 0):g}% interval", joint=" to "),
            Column(("pointed",), "Answers"),
        ),
        section=pl.concat_str("model", "task", separator="/"),
        titles={f"{model}/{task}": settings.pair(model, task) for model, task in settings.pairs},
        notes=(
            "Of the answers that hold right and wrong parts, the share in which the pointer lies "
            "in a wrong one; a token or window outside of all parts does not count as a hit.",
            *_counted(frame, settings),
        ),
    )


def _counted(frame: pl.DataFrame, settings: Settings) -> list[str]:
    """How many answers and parts there are, and what missing ones count as."""
    rows = frame.unique(["model", "task"], maintain_order=True).to_dicts()
    missing = settings.more["missing"]
    sentences = [
        f"{settings.pair(row['model'], row['task'])} {row['answers']} answers, of which "
        f"{row['without_parts']} do not hold the parts in the form that is asked for and "
        f"{row['mixed']} hold right and wrong ones; {row['wrong']} of {row['parts']} parts are "
        f"wrong, and {row['missing']} more are missing; parts that answers lack "
        f"{LACKING[missing[row['task']]]}"
        for row in rows
    ]
    return note("Counted", sentences)
