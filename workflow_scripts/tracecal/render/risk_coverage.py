"""Thresholds on TRACE+ that promise an error rate among the answers kept, for each pair."""

from collections.abc import Mapping

from tracecal.render.table import ABSENT, Cell, Column, Row, RowGroup, Table, cell

NONE = "none"


def risk_coverage(
    controls: Mapping[tuple[str, str], Mapping],
    models: Mapping[str, str],
    tasks: Mapping[str, str],
) -> Table:
    """The table; `controls` holds the `risk_control` of the calibrators, by (model, task)."""
    first = next(iter(controls.values()))
    rates = [one["error_rate"] for one in first["thresholds"]]
    groups = [
        RowGroup(
            tuple(
                _row(model, t, tasks[t], controls[m, t]) for m, t in sorted(controls) if m == model
            ),
            models[model],
        )
        for model in sorted({model for model, _ in controls})
    ]
    return Table(
        name="risk_coverage",
        title="Risk and coverage",
        caption=_caption(first),
        columns=(
            Column(("model",), shown=False),
            Column(("task",), shown=False),
            Column(("task_label",), "Task", align="left"),
            Column(("n",), "n"),
            *(column for rate in rates for column in _columns(rate)),
        ),
        groups=tuple(groups),
        notes=_notes(controls),
    )


def _columns(rate: float) -> tuple[Column, ...]:
    group = f"Error rate ≤ {rate:g}"
    return (
        Column((f"threshold_{rate:g}",), "Threshold", group),
        Column((f"coverage_{rate:g}",), "Coverage", group),
        Column((f"error_{rate:g}",), "Error", group),
        Column((f"kept_{rate:g}",), shown=False),
    )


def _row(model: str, task: str, label: str, control: Mapping) -> Row:
    cells = [cell(model), cell(task), cell(label), cell(control["thresholds"][0]["n"])]
    return (*cells, *(one for found in control["thresholds"] for one in _found(found)))


def _found(found: Mapping) -> tuple[Cell, ...]:
    if found["threshold"] is None:
        return cell(NONE), cell(0.0), cell(None), cell(0)
    kept = found["kept"]
    return (
        cell(found["threshold"]),
        cell(kept / found["n"]),
        cell(found["wrong"] / kept),
        cell(kept),
    )


def _caption(control: Mapping) -> str:
    return (
        "How many answers can be kept at a wished error rate. Answers whose TRACE+ probability "
        "reaches the threshold are kept; coverage is their share and error the share of wrong ones "
        f"among them, over n answers that split {control['split']} did not fit on. With confidence "
        f"{control['confidence']:g}, for each threshold on its own, the error rate among answers "
        "kept for further such questions is at most the wished one: Learn-then-Test with a fixed "
        "sequence of thresholds and exact binomial tests."
    )


def _notes(controls: Mapping[tuple[str, str], Mapping]) -> tuple[str, ...]:
    none = any(one["threshold"] is None for c in controls.values() for one in c["thresholds"])
    found = [
        f"{NONE}: no threshold can promise this rate with these n answers ({ABSENT}: nothing kept)."
    ]
    return (
        *(found if none else []),
        "Variants of one question are not independent: one of them is tested at most, and none "
        "where the fit has seen another.",
    )
