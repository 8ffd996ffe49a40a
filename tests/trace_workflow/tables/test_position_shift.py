"""The table of shifted positions: its numbers, what is bold, and beside the paper's."""

import csv as csv_module
import io
from dataclasses import replace

import polars as pl

from support import synthetic
from trace_workflow.config import paper
from trace_workflow.tables import position_shift as module
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.paper_comparison import compare_with_paper

PAPER = paper.read()["position_shift"]
MODEL = {"qwen2.5-7b-instruct": "Qwen2.5-7B-Instruct"}
TASKS = {"mlqa": "MLQA", "svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TruthfulQA"}
MAIN = {"model": "qwen2.5-7b-instruct", "tasks": list(TASKS)}


def analysis(values, draws_sd=0.002, undefined=0):
    """The analysis from {task: (original, shifted)}; the average is under None."""
    rows = []
    for task, (original, shifted) in values.items():
        defined = None not in (original, shifted)
        means = {
            "original": original,
            "shifted": shifted,
            "difference": shifted - original if defined else None,
        }
        sds = {"original": 0.012, "shifted": 0.011, "difference": 0.004}
        rows += [(task, q, "split", mean, sds[q], 20, undefined) for q, mean in means.items()]
        rows += [(task, q, "draw", means[q], draws_sd, 10, 0) for q in ("shifted", "difference")]
    names = ["task", "quantity", "over", "mean", "sd", "repetitions", "undefined"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


ALL = {"mlqa": (0.78, 0.76), "svamp": (0.82, 0.825), "triviaqa": (0.83, 0.827)}
VALUES = ALL | {"truthfulqa": (0.64, 0.63), None: (0.7675, 0.7605)}


def made(values=VALUES, **options):
    settings = synthetic.settings([], MODEL, TASKS, main=MAIN)
    frames = synthetic.answered(MODEL, TASKS)
    return module.table(
        replace(settings, frames=frames | {"position_shift": analysis(values, **options)})
    )


def lines(table):
    return {row["task"]: row for row in csv_module.DictReader(io.StringIO(render_csv(table)))}


def bold(table):
    keys = [column.keys[0] for column in table.columns]
    places = [keys.index("original"), keys.index("shifted")]
    return [tuple(row[place].emphasis for place in places) for row in table.rows]


def test_values_and_spreads_are_told_apart():
    found = lines(made())
    assert list(found) == ["mlqa", "svamp", "triviaqa", "truthfulqa", "average"]
    row = {key: float(value) for key, value in list(found["mlqa"].items())[2:9]}
    assert row == {
        "original": 0.78,
        "shifted": 0.76,
        "difference": 0.76 - 0.78,
        "difference_sd": 0.004,
        "difference_draws_sd": 0.002,
        "original_sd": 0.012,
        "shifted_sd": 0.011,
    }
    assert found["average"]["tasks"] == "mlqa svamp triviaqa truthfulqa"


def test_the_higher_is_bold_where_random_orders_do_not_explain_it():
    # Differences of -0.02, 0.005, -0.003, -0.01 and -0.007 against two s.d. of 0.002.
    first, second, neither = ("best", None), (None, "best"), (None, None)
    assert bold(made()) == [first, second, neither, first, first]
    assert bold(made(draws_sd=0.02)) == [neither] * 5
    assert bold(made(draws_sd=None)) == [neither] * 5


def test_a_note_counts_the_draws():
    assert "Position-shifted: the mean of 10 random draws." in made().notes


def test_every_published_value_has_its_place():
    page = render_html(compare_with_paper("position_shift", list(lines(made()).values()), PAPER))
    assert "10 published values" in page
    assert "Not compared" not in page


def test_what_is_undefined_is_a_dash_and_a_note():
    table = made(VALUES | {"svamp": (None, None)}, undefined=3)
    assert lines(table)["svamp"]["shifted"] == lines(table)["svamp"]["difference"] == ""
    assert any("SVAMP (3 of 20 splits)" in note for note in table.footnotes)


def test_a_task_without_results_is_named():
    some = {task: pair for task, pair in VALUES.items() if task != "truthfulqa"}
    assert made(some).footnotes[0] == "No results yet on TruthfulQA."
