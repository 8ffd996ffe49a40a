"""The table of thresholds with a guarantee."""

import csv as csv_module
import io
from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from trace_workflow.analyses.risk_coverage import risk_coverage as gathered
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.risk_coverage import table as risk_table

MODELS = {"m1": "Model_1", "m2": "Model & 2"}
TASKS = {"t": "Task <1>", "u": "Task 2"}


def control(*found, n=50):
    names = ("error_rate", "threshold", "kept", "wrong")
    thresholds = []
    for one in found:
        row = dict(zip(names, one, strict=True)) | {"n": n, "enough": None if one[1] else 992}
        row["coverage"] = row["kept"] / n if n else 0.0
        row["allowed"] = row["wrong"] + 1 if row["kept"] else None
        row["reason"] = None if row["threshold"] else "too few"
        thresholds.append(row)
    terms = {"ranked_by": "mean_of_three", "split": 0, "confidence": 0.9, "groups": n // 2}
    return terms | {"thresholds": thresholds}


CONTROLS = {
    ("m2", "t"): control((0.05, None, 0, 0), (0.2, 0.71, 20, 3)),
    ("m1", "u"): control((0.05, 0.98765432101234, 45, 1), (0.2, 0.5, 50, 5)),
    ("m1", "t"): control((0.05, None, 0, 0), (0.2, None, 0, 0), n=0),
}


def risk_coverage(controls, models, tasks):
    frame = gathered(list(controls.values()), list(controls))
    rows = [(model, task, 0.4) for model, task in controls]
    accuracy = pl.DataFrame(rows, schema=["model", "task", "accuracy"], orient="row")
    frames = {"risk_coverage": frame, "accuracy": accuracy}
    return risk_table(replace(synthetic.settings([], models, tasks), frames=frames))


def read(table):
    lines = csv_module.DictReader(io.StringIO(render_csv(table)))
    return {(line["model"], line["task"]): line for line in lines}


def test_rows_go_by_model_and_task_and_shares_by_the_tested_answers():
    found = read(risk_coverage(CONTROLS, MODELS, TASKS))
    assert list(found) == [("m1", "t"), ("m1", "u"), ("m2", "t")]
    line = found["m1", "u"]
    assert (line["threshold_0.05"], line["kept_0.05"], line["n"]) == (
        "0.98765432101234",
        "45",
        "50",
    )
    assert float(line["coverage_0.05"]) == pytest.approx(0.9)
    assert (line["wrong_0.05"], line["allowed_0.05"], line["wrong_0.2"]) == ("1", "2", "5")


def test_that_there_is_no_guarantee_is_said():
    table = risk_coverage(CONTROLS, MODELS, TASKS)
    line = read(table)["m2", "t"]
    wanted = [line[f"{name}_0.05"] for name in ("threshold", "coverage", "allowed", "kept")]
    assert wanted == ["", "0.0", "", "0"]
    assert any(note.startswith("none (m): no threshold guarantees") for note in table.footnotes)
    assert "0.600 & none (992) & 0.000 & -- & 0.710 & 0.400 & 3/20" in render_latex(table)
    all_kept = {("m1", "u"): CONTROLS["m1", "u"]}
    assert risk_coverage(all_kept, MODELS, TASKS).footnotes == ()
    assert line["reason_0.05"] == "too few"


def test_rates_that_are_kept_nowhere_leave_the_print_for_a_note():
    some = {pair: one for pair, one in CONTROLS.items() if pair != ("m1", "u")}
    table = risk_coverage(some, MODELS, TASKS)
    assert {column.group for column in table.columns} == {"", "Error rate ≤ 0.2"}
    assert table.footnotes[0] == "No threshold guarantees an error rate of 0.05 anywhere."
    assert read(table)["m2", "t"]["enough_0.05"] == "992"
    none = {("m1", "t"): CONTROLS["m1", "t"]}
    assert len({column.group for column in risk_coverage(none, MODELS, TASKS).columns}) == 3


@pytest.mark.parametrize("render", [render_latex, render_html, render_csv])
def test_the_order_of_pairs_does_not_matter(render):
    reverse = dict(reversed(CONTROLS.items()))
    first, second = (risk_coverage(c, MODELS, TASKS) for c in (CONTROLS, reverse))
    assert render(first) == render(second)
