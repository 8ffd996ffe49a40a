"""The language table: pooled row first, each language beside it, honest where there is none."""

from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from support.synthetic import ENTRIES, MODELS, TASKS
from trace_workflow.analyses.averages import averages
from trace_workflow.tables import languages as module
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from tracecal.statistics.metrics import ACCURACY

METRICS = synthetic.study(splits=3)
MODEL, TASK = sorted(MODELS)[0], sorted(TASKS)[0]
STUDY = {"model": MODEL, "tasks": sorted(TASKS)}


def divided(*languages):
    own = METRICS.filter(model=MODEL, task=TASK)
    frames = [
        own.with_columns(pl.col("value") + 0.01 * index, language=pl.lit(language))
        for index, language in enumerate(languages)
    ]
    return pl.concat(frames) if frames else own.clear().with_columns(language=pl.lit(""))


def table(*languages):
    return table_of(divided(*languages))


def table_of(frame):
    means = averages(synthetic.with_picked(frame, ENTRIES), {}, by=["language"])
    frames = synthetic.frames(METRICS, ENTRIES, main=STUDY) | {
        "language_averages": means,
        "language_accuracy": pl.DataFrame(
            [
                (MODEL, TASK, n, right, right / n, 0, 0, 0, language)
                for language, n, right in (("de", 60, 30), ("zh", 40, 4))
                if language in set(frame["language"])
            ],
            schema=ACCURACY | {"language": pl.String},
            orient="row",
        ),
    }
    return module.table(
        replace(synthetic.settings(ENTRIES, MODELS, TASKS, main=STUDY), frames=frames)
    )


def rows_of(*languages):
    return {
        row["language"]: row
        for row in pl.read_csv(render_csv(table(*languages)).encode()).iter_rows(named=True)
    }


def test_values_are_means_over_splits_by_hand():
    rows = rows_of("de", "zh")
    assert list(rows) == ["all", "de", "zh"]
    own = METRICS.filter(model=MODEL, task=TASK, estimator="trace_plus", metric="brier")["value"]
    assert rows["all"]["trace_plus_brier"] == pytest.approx(own.mean())
    assert rows["zh"]["trace_plus_brier"] == pytest.approx(own.mean() + 0.01)
    assert rows["de"]["trace_plus_brier_sd"] == pytest.approx(own.std())


def test_the_best_baseline_is_chosen_in_each_row():
    rows = rows_of("de")
    baselines = [entry.id for entry in ENTRIES if entry.role == "baseline"]
    means = (
        METRICS.filter(pl.col("estimator").is_in(baselines), model=MODEL, task=TASK, metric="auroc")
        .group_by("estimator")
        .agg(pl.col("value").mean())
    )
    best = means.sort("value").row(-1)
    assert rows["all"]["best_baseline_auroc_id"] == best[0]
    assert rows["all"]["best_baseline_auroc"] == pytest.approx(best[1])


def test_without_a_multilingual_task_the_table_says_so():
    empty = table()
    assert list(empty.rows) == []
    for render in (render_html, render_latex):
        assert "No task of this study has answers in several languages." in render(empty)


def test_undefined_splits_are_marked_and_counted():
    assert not any(cell.mark for row in table("de").rows for cell in row)
    frame = divided("de", "zh").with_columns(
        value=pl.when(pl.col("language") == "zh", pl.col("metric") == "auroc", pl.col("split") == 1)
        .then(None)
        .otherwise("value")
    )
    made = table_of(frame)
    marks = {row[0].text: [cell.mark for cell in row] for row in made.rows}
    assert marks["de"] == marks["all"] == [""] * 12
    assert marks["zh"] == [""] * 4 + ["", "†"] * 4
    assert made.footnotes[0].endswith("leaves out: AUROC of zh on MLQA (1 of 3 splits).")


def test_right_answers_stand_beside_each_language_and_too_few_are_said_to_be():
    made = table("de", "zh")
    rows = {row[0].text: [cell.text for cell in row] for row in made.rows}
    assert rows["de"][2:4] == ["0.500", "30/60"]
    assert rows["zh"][2:4] == ["0.100", "4/40"]
    assert made.notes[0].endswith("depends on single answers: zh (4).")
    assert not table("de").notes
