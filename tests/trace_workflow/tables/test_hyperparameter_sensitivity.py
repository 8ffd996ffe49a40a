"""The table of hyperparameters: ranges by hand, and beside the paper's."""

import csv as csv_module
import io
from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from trace_workflow.analyses.operator_variants import DEFAULTS, GRID
from trace_workflow.config import paper
from trace_workflow.tables import hyperparameter_sensitivity as module
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_with_paper

PAPER = paper.read()["hyperparameter_sensitivity"]
MODEL = {"qwen2.5-7b-instruct": "Qwen2.5-7B-Instruct"}
TASKS = {"mlqa": "MLQA", "svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TruthfulQA"}
MAIN = {"model": "qwen2.5-7b-instruct", "tasks": list(TASKS)}
BRIER, AUROC = 0.15, 0.77


def analysis(changes=(), tasks=TASKS):
    """The analysis with every mean at the default's, but for (setting, level, metric) changes."""
    settings = [("default", None), *((s, float(x)) for s, levels in GRID.items() for x in levels)]
    means = {
        (setting, level, metric): mean
        for setting, level in settings
        for metric, mean in (("brier", BRIER), ("auroc", AUROC))
    } | dict(changes)
    rows = [
        (task, *key, mean, 0.01 if key[2] == "brier" else 0.02, 20, 20 * (mean is None))
        for task in (None, *tasks)
        for key, mean in means.items()
    ]
    names = ["task", "setting", "level", "metric", "mean", "sd", "repetitions", "undefined"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def made(*arguments, **options):
    return table_of(analysis(*arguments, **options))


def table_of(frame):
    settings = synthetic.settings([], MODEL, TASKS, main=MAIN)
    frames = synthetic.answered(MODEL, TASKS) | {"hyperparameter_sensitivity": frame}
    return module.table(replace(settings, frames=frames))


def lines(table):
    return {r["parameter"]: r for r in csv_module.DictReader(io.StringIO(render_csv(table)))}


def test_ranges_go_from_the_lowest_mean_to_the_highest():
    found = lines(
        made(
            {
                ("alpha", 0.2, "brier"): 0.14,
                ("alpha", 0.3, "brier"): 0.1404,
                ("alpha", 0.6, "brier"): 0.17,
                ("decay", 8.0, "auroc"): 0.70,
                ("exponent", 0.0, "auroc"): 0.78,
            }
        )
    )
    assert list(found) == ["alpha", "beta", "gamma", "lambda", "w", "rho"]
    alpha, decay, rho = (found[name] for name in ("alpha", "lambda", "rho"))
    assert (float(alpha["brier_low"]), float(alpha["brier_high"])) == (0.14, 0.17)
    assert (float(decay["auroc_low"]), float(decay["auroc_high"])) == (0.70, AUROC)
    assert (float(rho["auroc_low"]), float(rho["auroc_high"])) == (AUROC, 0.78)
    assert rho["values"] == "0, 0.125, 0.25, 0.5, 0.75, 1"
    for row in found.values():
        assert (float(row["brier_default"]), float(row["auroc_default"])) == (BRIER, AUROC)
        assert (float(row["brier_low_sd"]), float(row["auroc_high_sd"])) == (0.01, 0.02)


def test_each_row_shows_its_own_default():
    found = lines(made())
    defaults = [float(row["default"]) for row in found.values()]
    assert defaults == list(DEFAULTS.values())
    for row in found.values():
        assert float(row["default"]) in map(float, row["values"].split(", "))


def test_every_published_value_has_its_place():
    page = render_html(
        compare_with_paper("hyperparameter_sensitivity", list(lines(made()).values()), PAPER)
    )
    assert "30 published values" in page
    assert "Not compared" not in page


def test_the_notes_give_the_runs_numbers():
    table = made({("default", None, "brier"): 0.1234, ("alpha", 0.2, "auroc"): 0.5})
    assert any("Brier 0.123 and AUROC 0.770" in note for note in table.notes)
    assert any("at most 0.010 for Brier and 0.020 for AUROC" in note for note in table.notes)
    assert "0.500--0.770" in render_latex(table)


def test_without_any_auroc_there_are_dashes():
    undefined = {(s, x, "auroc"): None for s, x in analysis().select("setting", "level").rows()}
    table = made(undefined)
    found = lines(table)
    assert all(row["auroc_low"] == row["auroc_high"] == "" for row in found.values())
    assert all(float(row["brier_low"]) == BRIER for row in found.values())
    assert any("AUROC on MLQA (20 of 20 splits), SVAMP (" in note for note in table.footnotes)


def test_a_task_without_results_is_named():
    assert made(tasks=["mlqa", "svamp", "triviaqa"]).footnotes[0] == "No results yet on TruthfulQA."


@pytest.mark.parametrize("render", [render_csv, render_html, render_latex])
def test_it_does_not_hang_on_the_order_of_rows(render):
    changed = {("beta", 0.5, "brier"): 0.13}
    rows = analysis(changed)
    again = table_of(rows.sample(fraction=1, shuffle=True, seed=1))
    assert render(again) == render(made(changed))
