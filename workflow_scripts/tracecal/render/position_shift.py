"""TRACE's ranking with the risk of an answer where it stood, and at other positions."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.render import phrases
from tracecal.render.table import Cell, Column, Row, RowGroup, Table, cell

SIDES = ("original", "shifted")
DECIMALS = 3
AVERAGE = "average"
SDS = 2


def position_shift_table(
    analysis: pl.DataFrame, models: Mapping[str, str], tasks: Mapping[str, str], main: Mapping
) -> Table:
    """The table from the analysis of the same name; `main` names the model and the tasks."""
    present = analysis["task"].drop_nulls().unique().sort().to_list()
    found = {(one["task"], one["quantity"], one["over"]): one for one in analysis.to_dicts()}
    scope = (cell(main["model"]), cell(" ".join(present)))

    def row(task: str | None) -> Row:
        def of(quantity: str, over: str = "split") -> dict:
            return found[task, quantity, over]

        difference, chance = of("difference"), of("difference", "draw")["sd"]
        return (
            cell(task or AVERAGE),
            cell(tasks[task] if task else "Average"),
            *_sides([of(side)["mean"] for side in SIDES], chance),
            cell(difference["mean"]),
            cell(difference["sd"]),
            cell(chance),
            *(cell(of(side)["sd"]) for side in SIDES),
            cell(difference["undefined"]),
            *scope,
        )

    rows = [row(task) for task in present]
    return Table(
        name="position_shift",
        title="Position shift",
        caption=_caption(
            found[None, "shifted", "split"], found[None, "shifted", "draw"], models[main["model"]]
        ),
        columns=_columns(),
        groups=(RowGroup(tuple(rows)), RowGroup((row(None),))),
        notes=(
            *phrases.absent_tasks(main["tasks"], present, tasks),
            *_undefined(found, present, tasks),
        ),
        wide=False,
    )


def _columns() -> tuple[Column, ...]:
    between = "Shifted less original"
    return (
        Column(("task",), shown=False),
        Column(("label",), "Task", align="left"),
        Column(("original",), "Original", better="higher", decimals=DECIMALS),
        Column(("shifted",), "Position-shifted", better="higher", decimals=DECIMALS),
        Column(("difference",), "Mean", between, decimals=DECIMALS, signed=True),
        Column(("difference_sd",), "s.d., splits", between, decimals=DECIMALS),
        Column(("difference_draws_sd",), "s.d., draws", between, decimals=DECIMALS),
        *(Column((f"{side}_sd",), shown=False) for side in SIDES),
        Column(("undefined_splits",), shown=False),
        Column(("model",), shown=False),
        Column(("tasks",), shown=False),
    )


def _sides(values: Sequence[float | None], chance: float | None) -> list[Cell]:
    """Both AUROCs, the higher one marked where they differ by more than random orders do."""
    if None in (*values, chance) or abs(values[1] - values[0]) <= SDS * chance:
        return [cell(value) for value in values]
    higher = max(values)
    return [cell(value, emphasis="best" if value == higher else None) for value in values]


def _caption(splits: Mapping, draws: Mapping, model: str) -> str:
    drawn = phrases.count(draws["repetitions"], "random draw")
    return (
        f"AUROC of TRACE on {model}, the mean over "
        f"{phrases.count(splits['repetitions'], 'random calibration/evaluation split')}. "
        "Position-shifted: the tokens of every answer, each with its surprisal and entropy, "
        f"in a random order; the mean of {drawn}. The difference spreads for two reasons. Over "
        "splits: which answers are evaluated, with all draws taken together. Over draws: "
        "which order was drawn, with all splits taken together; if order told nothing, the "
        "original would be one draw more. Bold: the higher AUROC, where the two differ by more "
        f"than {SDS} s.d. over draws. Average: the mean over the tasks."
    )


def _undefined(found: Mapping, present: Sequence[str], tasks: Mapping[str, str]) -> list[str]:
    """A note on the splits in which a task has no AUROC."""
    partly = [(task, found[task, "original", "split"]) for task in present]
    named = [
        f"{tasks[task]} ({one['undefined']} of {phrases.count(one['repetitions'], 'split')})"
        for task, one in partly
        if one["undefined"]
    ]
    return [f"AUROC undefined and left out of the means: {'; '.join(named)}."] if named else []
