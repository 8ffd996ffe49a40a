"""The tables of parts of answers, from analyses made up by hand."""

import polars as pl
import pytest

from support import synthetic
from trace_workflow.analyses.localisation import CHANCE, LOCALISATION, POINTERS
from trace_workflow.analyses.part_scores import METRICS, PART, PART_SCORES, WHOLE
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from tracecal.estimators.estimator import Entry

MODELS, TASKS = {"m": "Model"}, {"facts": "Facts"}
STUDY = {"models": ["m"], "tasks": ["facts"]}
ENTRIES = [
    Entry("seq_logp", "SeqLogP", "likelihood", "baseline", "aichberger2024rethinking"),
    Entry("trace_plus", "TRACE+", "trace", "trace", "xu2026trace"),
]
COUNTS = {"answers": 50, "without_parts": 3, "mixed": 20, "parts": 90, "missing": 4, "wrong": 30}


def pointed(mixed=20):
    """Pointers hit at 0.9, 0.8, …; the window, without entropies, never."""
    rows = [
        ("m", "facts", name, None if name == "window" else 0.9 - 0.1 * place)
        for place, name in enumerate((*POINTERS, *CHANCE))
    ]
    frame = pl.DataFrame(rows, schema=["model", "task", "pointer", "value"], orient="row")
    return frame.with_columns(
        low=pl.col("value") - 0.05,
        high=pl.col("value") + 0.05,
        level=pl.lit(0.95),
        resamples=pl.lit(100),
        pointed=pl.when(pl.col("value").is_null()).then(0).otherwise(mixed),
        **{name: pl.lit(value) for name, value in (COUNTS | {"mixed": mixed}).items()},
    ).select(list(LOCALISATION))


def scores():
    kinds = [("seq_logp", PART, 0.8), ("seq_logp", WHOLE, 0.6), ("trace_plus", PART, 0.7)]
    rows = [
        ("m", "facts", estimator, kind, metric, value, value - 0.1, value + 0.1, 0.95, 100, 90)
        for estimator, kind, value in kinds
        for metric in METRICS
    ]
    return pl.DataFrame(rows, schema=PART_SCORES, orient="row")


def made(name, frames, missing="unanswered"):
    settings = synthetic.settings(
        ENTRIES, MODELS, TASKS, {"missing": {"facts": missing}}, parts=STUDY
    )
    return synthetic.made(name, frames, settings)


def test_the_best_pointer_stands_first_and_every_answer_is_accounted_for():
    table = made("localisation", {"localisation": pointed()})
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts[0] == ["Token of highest surprisal", "0.800", "0.750 to 0.850", "20"]
    assert texts[-1] == ["Window of peak risk", "–", "–", "0"], "which has no value"
    values = [row[1] for row in texts[:-1]]
    assert values == sorted(values, reverse=True) and len(values) == 6
    counted = table.notes[-1]
    assert "50 answers, 3 without parts" in counted
    assert "30 of 90 parts are wrong, 4 more are missing" in counted
    assert counted.endswith("missing parts are left out.")
    wrong = made("localisation", {"localisation": pointed()}, "wrong").notes[-1]
    assert wrong.endswith("count as wrong in the accuracy.")


def test_a_parts_own_score_stands_beside_its_answers():
    table = made("part_scores", {"part_scores": scores()})
    first, second = ([cell.text for cell in row] for row in table.rows)
    assert first[1:] == ["0.800"] * 6 + ["0.600"] * 3
    assert second[1:] == ["0.700"] * 6 + ["–"] * 3
    assert table.groups[0].title == "Facts"


@pytest.mark.parametrize(
    ("name", "frame"),
    [("localisation", pointed), ("part_scores", scores)],
    ids=["where", "scores"],
)
def test_they_are_written(name, frame):
    table = made(name, {name: frame()})
    assert "SeqLogP" in render_html(table) or "Window of peak risk" in render_html(table)
    assert render_latex(table) and render_csv(table)
