"""Improvements of TRACE+ with their intervals, in every table that shows them, by hand."""

import csv as csv_module
import io
from dataclasses import replace
from statistics import stdev

import polars as pl
import pytest

from support import synthetic
from support.synthetic import ENTRIES, MODELS, TASKS, rows
from trace_workflow.config import paper
from trace_workflow.tables import main_comparison
from trace_workflow.tables.cross_model import table as cross_model
from trace_workflow.tables.cross_model_details import (
    cross_model_best_estimators,
    cross_model_task_details,
)
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_with_paper
from tracecal.estimators.estimator import Entry

A = Entry("a", "Baseline A", "likelihood", "baseline", "key_a")
B = Entry("b", "Baseline B", "beam", "baseline", "key_b")
PLUS = Entry("trace_plus", "TRACE+", "trace", "trace", "xu2026trace")
SMALL = [A, B, PLUS]
NAMES = {"t": "Task T", "u": "Task U"}
STUDY = {"models": ["m", "n"], "tasks": ["t", "u"]}

# Brier of two splits, by (model, task) and estimator; AUROC is one less the Brier score.
VALUES = {
    ("m", "t"): {"a": (0.20, 0.22), "b": (0.30, 0.30), "trace_plus": (0.10, 0.16)},
    ("m", "u"): {"a": (0.30, 0.30), "b": (0.20, 0.20), "trace_plus": (0.19, 0.19)},
    ("n", "t"): {"a": (0.20, 0.20), "b": (0.30, 0.30), "trace_plus": (0.25, 0.25)},
    ("n", "u"): {"a": (0.20, 0.20), "b": (0.30, 0.30), "trace_plus": (0.10, 0.10)},
}
INTERVALS = synthetic.intervals(
    (None, "m", "t", "brier", 0.02, 0.10),
    (None, "m", "u", "brier", 0.0, 0.02),
    (None, "n", "t", "brier", -0.07, -0.01),
    ("main", "m", None, "brier", 0.01, 0.09),
    ("cross", "m", None, "brier", -0.01, 0.09),
    ("cross", "n", None, "brier", 0.015, 0.04),
    ("cross", None, None, "brier", 0.011, 0.05),
)


def metrics(values=VALUES):
    return rows(
        [
            (model, task, estimator, split, metric, value if metric == "brier" else 1 - value)
            for (model, task), found in values.items()
            for estimator, both in found.items()
            for split, value in enumerate(both)
            for metric in ("brier", "auroc")
        ]
    )


def main(entries=SMALL, intervals=INTERVALS):
    study = {"model": "m", "tasks": ["t", "u"]}
    frames = synthetic.frames(metrics(), entries, intervals, main=study)
    return main_comparison.table(
        replace(synthetic.settings(entries, {"m": "M"}, NAMES, main=study), frames=frames)
    )


def cross(make, entries=SMALL, intervals=INTERVALS, frame=None):
    frame = metrics() if frame is None else frame
    return made(make, frame, intervals, entries, {"m": "M", "n": "N"}, NAMES, STUDY)


def made(make, frame, intervals, entries, models, tasks, study):
    frames = synthetic.frames(frame, entries, intervals, cross=study)
    frames["accuracy"] = synthetic.accuracy(study["models"], tasks)
    return make(replace(synthetic.settings(entries, models, tasks, cross=study), frames=frames))


def lines(table):
    return list(csv_module.DictReader(io.StringIO(render_csv(table))))


def marks(table, key):
    index = [column.keys[0] for column in table.columns].index(key)
    return [row[index].mark for row in table.rows]


def number(row, key):
    return float(row[key]) if row[key] else None


def test_the_main_comparison_ends_with_improvements_and_their_bounds():
    table = main()
    picked, gain, low, high, named, *bounds, best = lines(table)[-8:]
    assert [row["estimator"] for row in (picked, gain, low, high, named, best)] == [
        "picked_baseline",
        "improvement_picked",
        "improvement_picked_low",
        "improvement_picked_high",
        "improvement_named",
        "improvement",
    ]
    assert [row["label"] for row in (low, high)] == ["95 % interval, from", "95 % interval, to"]
    # `a` is picked, `b` is named, and the best of a column depends on it.
    assert number(picked, "t_brier") == pytest.approx(0.21)
    assert number(gain, "t_brier") == pytest.approx(0.21 - 0.13)
    assert number(gain, "t_brier_sd") == pytest.approx(stdev([0.10, 0.06]))
    assert number(gain, "t_auroc") == pytest.approx(0.21 - 0.13)
    assert number(named, "t_brier") == pytest.approx(0.30 - 0.13)
    # On average `a` has 0.255, `b` 0.25 and TRACE+ 0.16.
    assert number(gain, "average_brier") == pytest.approx(0.255 - 0.16)
    assert number(best, "average_brier") == pytest.approx(0.25 - 0.16)
    assert number(best, "t_brier") == pytest.approx(0.21 - 0.13)
    assert (number(low, "t_brier"), number(high, "t_brier")) == (0.02, 0.10)
    assert (number(low, "average_brier"), number(high, "average_brier")) == (0.01, 0.09)
    assert [row["estimator"] for row in bounds] == [
        "improvement_named_low",
        "improvement_named_high",
    ]
    assert number(low, "t_auroc") is None
    assert gain["model"] == low["model"] == "m"


def test_a_difference_is_not_printed_where_its_interval_is_wider_than_one_half():
    wide = synthetic.intervals(
        (None, "m", "t", "brier", -0.3, 0.3),
        (None, "m", "u", "brier", -0.2, 0.2),
        ("cross", "m", None, "brier", -0.3, 0.3),
        ("cross", "n", None, "brier", -0.2, 0.2),
    )
    note = "– Not printed where its interval is wider than 0.5: too few answers."
    table = main(intervals=wide)
    rows = dict(zip(table.frame["estimator"], table.rows, strict=True))
    keys = [column.keys[0] for column in table.columns]
    of_t, of_u = (keys.index(f"{task}_brier") for task in "tu")
    for end in ("", "_low", "_high"):
        assert rows[f"improvement_picked{end}"][of_t].text == "–"
    assert [rows[f"improvement_picked{end}"][of_u].text for end in ("", "_low")] == [
        "+0.110",
        "−0.200",
    ]
    assert rows["improvement"][of_t].text == "+0.080", "a point"
    csv = {row["estimator"]: row for row in lines(table)}
    assert number(csv["improvement_picked"], "t_brier") == pytest.approx(0.08)
    across = cross(cross_model, intervals=wide)
    index = [column.keys[0] for column in across.columns].index("brier_picked_improvement")
    assert [row[index].text == "–" for row in across.rows[:2]] == [True, False]
    assert note in table.legend and note in across.legend
    assert note not in main().legend


OWN = Entry("gap", "My gap", "own", "own", "")
WITH_OWN = {
    pair: values | {"gap": tuple(value + 0.05 for value in values["trace_plus"])}
    for pair, values in VALUES.items()
}


def test_an_own_score_is_a_group_of_its_own_beside_trace_plus():
    study = {"model": "m", "tasks": ["t", "u"]}
    entries = [A, B, PLUS, OWN]
    frames = synthetic.frames(metrics(WITH_OWN), entries, INTERVALS, main=study)
    settings = synthetic.settings(entries, {"m": "M"}, NAMES, main=study)
    table = main_comparison.table(replace(settings, frames=frames))
    titles = [group.title for group in table.groups]
    assert titles[3:] == [
        "Your own scores",
        "TRACE+ against a baseline: positive where TRACE+ is better",
        "My gap: positive where it is better",
    ]
    assert len(titles) == len({*titles}), "no heading stands twice"
    by_id = {row["estimator"]: row for row in lines(table)}
    assert number(by_id["gap"], "t_brier") == pytest.approx(0.18)
    assert number(by_id["gap_improvement_picked"], "t_brier") == pytest.approx(0.21 - 0.18)
    assert number(by_id["gap_improvement_trace_plus"], "t_brier") == pytest.approx(-0.05)
    assert number(by_id["gap_improvement_trace_plus_low"], "average_brier") == 0.01
    assert by_id["gap_improvement_trace_plus"]["label"] == "My gap against TRACE+"
    assert number(by_id["improvement_picked"], "t_brier") == pytest.approx(0.21 - 0.13)


@pytest.mark.parametrize(
    "make", [cross_model, cross_model_task_details, cross_model_best_estimators]
)
def test_an_own_score_stands_in_every_cross_model_table(make):
    first, *_ = lines(cross(make, [A, B, PLUS, OWN], frame=metrics(WITH_OWN)))
    plus = number(first, "brier_trace_plus")
    assert number(first, "brier_gap") == pytest.approx(plus + 0.05)
    assert number(first, "brier_gap_trace_plus_improvement") == pytest.approx(-0.05)
    assert number(first, "auroc_gap_picked_improvement") == pytest.approx(
        number(first, "auroc_picked_improvement") - 0.05
    )
    assert {"brier_gap_trace_plus_improvement_low", "auroc_gap_named_improvement_high"} <= {*first}


def test_one_task_is_not_averaged():
    study = {"model": "m", "tasks": ["t"]}
    frames = synthetic.frames(metrics(), SMALL, INTERVALS, main=study)
    settings = synthetic.settings(SMALL, {"m": "M"}, NAMES, main=study)
    table = main_comparison.table(replace(settings, frames=frames))
    assert not [key for column in table.columns for key in column.keys if "average" in key]
    assert {"Avg."}.isdisjoint(column.label for column in table.columns)


def test_the_main_comparison_marks_wins_that_are_not_supported():
    table = main()
    # Rows: picked, its gain and bounds, the named one's gain and bounds, the oracle's gain.
    assert marks(table, "t_brier")[-8:] == [""] * 8
    begins_at_zero = ["", "§", "", "", "§", "", "", ""]
    assert marks(table, "u_brier")[-8:] == begins_at_zero
    assert marks(table, "t_auroc")[-8:] == begins_at_zero, "no interval"
    assert any(note.startswith("§ Better, but") for note in table.notes)


def test_improvements_take_no_part_in_the_emphasis():
    table = main()
    index = [column.keys[0] for column in table.columns].index("t_brier")
    assert [row[index].emphasis for row in table.rows] == ["second", None, "best", *[None] * 8]


def test_the_oracle_is_a_point():
    frames = synthetic.frames(metrics(), SMALL, INTERVALS, main={"model": "m", "tasks": ["t", "u"]})
    oracle = frames["improvements"].filter(against="oracle")
    assert (
        oracle.height and oracle["low"].null_count() == oracle["high"].null_count() == oracle.height
    )
    assert not oracle["supported"].any()


@pytest.mark.parametrize("entries", [[A, B], [PLUS]])
def test_without_one_side_there_are_no_improvements(entries):
    table = main(entries)
    assert [line["estimator"] for line in lines(table)] == [entry.id for entry in entries]
    assert not any("Improvement" in note for note in table.notes)
    for make in (cross_model_task_details, cross_model_best_estimators):
        found = cross(make, entries)
        assert "there is nothing to compare" in found.footnotes[0]
        assert {row["brier_improvement"] for row in lines(found)} == {""}


def test_the_cross_model_comparison_counts_supported_wins():
    table = cross(cross_model)
    m, n, overall = lines(table)
    # m: both tasks are won, t alone with an interval above zero; n: u is won without an interval.
    counts = (
        "brier_wins",
        "brier_tasks",
        "brier_picked_supported_wins",
        "auroc_named_supported_wins",
    )
    assert [m[key] for key in counts] == ["2", "2", "1", "0"]
    assert [n[key] for key in counts] == ["1", "2", "0", "0"]
    assert [overall[key] for key in counts] == ["3", "4", "1", "0"]
    assert (
        number(m, "brier_picked_improvement_low"),
        number(m, "brier_picked_improvement_high"),
    ) == (
        -0.01,
        0.09,
    )
    assert number(overall, "brier_named_improvement_low") == 0.011
    assert marks(table, "brier_picked_improvement") == ["§", "", ""]


def test_a_loss_is_neither_marked_nor_supported():
    reverse = synthetic.intervals((None, "n", "t", "brier", 0.01, 0.02))
    table = cross(cross_model_task_details, intervals=reverse)
    assert marks(table, "brier_picked_improvement") == ["§", "§", "", "§"]
    counted = cross(cross_model, intervals=reverse)
    assert lines(counted)[1]["brier_picked_supported_wins"] == "0"


def test_task_details_by_hand():
    table = cross(cross_model_task_details)
    named = [[row[0].text for row in group.rows] for group in table.groups]
    assert named == [["M", ""], ["N", ""]], "a model's name stands in its first row"
    assert [row[-1].text for row in table.rows[:2]] == [
        f"{row['right']}/{row['answers']}" for row in lines(table)[:2]
    ]
    found = {(row["model"], row["task"]): row for row in lines(table)}
    assert list(found) == list(VALUES)
    row = found["m", "u"]
    assert (row["brier_best_baseline_id"], row["brier_best_baseline_label"]) == ("b", B.label)
    assert number(row, "brier_best_baseline") == pytest.approx(0.20)
    assert number(row, "auroc_best_baseline") == pytest.approx(0.80)
    assert number(row, "brier_trace_plus") == pytest.approx(0.19)
    assert number(row, "brier_improvement") == pytest.approx(0.01)
    assert number(row, "brier_picked_improvement_high") == 0.02
    assert number(found["m", "t"], "brier_trace_plus_sd") == pytest.approx(stdev([0.10, 0.16]))
    assert marks(table, "brier_picked_improvement") == ["", "§", "", "§"]
    assert marks(table, "brier_improvement") == [""] * 4, "against the oracle there is no interval"


def test_best_estimators_by_hand():
    m, n = lines(cross(cross_model_best_estimators))
    # Averages of m: a 0.255, b 0.25; of n: a 0.2, b 0.3.
    assert (m["brier_best_baseline_id"], n["brier_best_baseline_id"]) == ("b", "a")
    assert m["auroc_best_baseline_label"] == B.label
    assert number(m, "brier_best_baseline") == pytest.approx(0.25)
    assert number(m, "brier_improvement") == pytest.approx(0.09)
    assert number(n, "auroc_trace_plus") == pytest.approx(1 - 0.175)
    assert number(n, "brier_picked_improvement_low") == 0.015
    assert m["tasks"] == "t u"


def test_the_three_tables_agree():
    averages, best = lines(cross(cross_model))[:2], lines(cross(cross_model_best_estimators))
    details = lines(cross(cross_model_task_details))
    for metric in ("brier", "auroc"):
        for key in ("best_baseline", "trace_plus", "improvement", "best_baseline_id"):
            column = f"{metric}_{key}"
            assert [row[column] for row in averages] == [row[column] for row in best]
        for row in averages:
            of_model = [one for one in details if one["model"] == row["model"]]
            won = [one for one in of_model if float(one[f"{metric}_improvement"]) > 0]
            assert row[f"{metric}_wins"] == str(len(won))


def test_undefined_auroc_is_a_dash_and_noted():
    values = dict.fromkeys(VALUES[("n", "t")], (None, None))
    undefined = rows(
        [("n", "t", name, split, "auroc", None) for name in values for split in (0, 1)]
    )
    kept = metrics().filter(
        ~((pl.col("model") == "n") & (pl.col("task") == "t") & (pl.col("metric") == "auroc"))
    )
    table = cross(cross_model_task_details, frame=pl.concat([kept, undefined]))
    row = next(row for row in lines(table) if (row["model"], row["task"]) == ("n", "t"))
    assert row["auroc_best_baseline_id"] == row["auroc_improvement"] == ""
    assert any("N on Task T (2 of 2 splits)" in note for note in table.footnotes)


PAPER = paper.read()
PAPER_MODELS = {one.ids["model"] for one in PAPER["cross_model_best_estimators"]}
PAPER_TASKS = {"svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TQA-Gen"}


@pytest.mark.parametrize("make", [cross_model_task_details, cross_model_best_estimators])
def test_every_published_value_finds_its_place(make):
    labels = {model: model.title() for model in PAPER_MODELS}
    frame = synthetic.study(labels, PAPER_TASKS, splits=3)
    study = {"models": sorted(labels), "tasks": sorted(PAPER_TASKS)}
    table = made(make, frame, synthetic.intervals(), ENTRIES, labels, PAPER_TASKS, study)
    name = make.__name__
    beside = compare_with_paper(name, lines(table), PAPER[name])
    assert not any("Not compared" in note for note in beside.notes)
    verdicts = [row["exceeds"] for row in lines(beside) if not row["column"].endswith("_id")]
    assert set(verdicts) <= {"yes", "no"}, "every number has its spread"


@pytest.mark.parametrize("render", [render_latex, render_csv, render_html])
@pytest.mark.parametrize("make", [cross_model_task_details, cross_model_best_estimators])
def test_order_does_not_matter(render, make):
    frame = synthetic.study(splits=3)
    study = {"models": sorted(MODELS), "tasks": sorted(TASKS)}
    other = {"models": sorted(MODELS)[::-1], "tasks": sorted(TASKS)[::-1]}
    first = made(make, frame, INTERVALS, ENTRIES, MODELS, TASKS, study)
    shuffled = [one.sample(fraction=1, shuffle=True, seed=2) for one in (frame, INTERVALS)]
    second = made(make, *shuffled, ENTRIES, MODELS, TASKS, other)
    assert render(first) == render(second)
