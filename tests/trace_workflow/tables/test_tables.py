"""The main and the cross-model table, against averages computed by hand."""

import csv as csv_module
import io
from dataclasses import replace
from statistics import stdev

import numpy as np
import polars as pl
import pytest

from support import synthetic
from support.synthetic import ENTRIES, MODELS, TASKS, rows, settings
from trace_workflow.tables import cross_model, main_comparison
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.standing_notes import beam_notes, count_notes, needed_answers
from trace_workflow.tables.table import as_in_paper
from tracecal.errors import InputError
from tracecal.estimators.estimator import Entry
from tracecal.statistics.metrics import ACCURACY

A = Entry("a", "A", "likelihood", "baseline", "key_a")
B = Entry("b", "B", "beam", "baseline", "key_b")
PLUS = Entry("trace_plus", "TRACE+", "trace", "trace", "xu2026trace")
BROADER = Entry("p_true", "P(True)", "asked", "broader", "k")
SMALL = [A, B, PLUS, BROADER]
NAMES = {"t": "Task <1>", "u": "Task & 2"}


def small(changes=()):
    """Two splits; (estimator, task): Brier and AUROC of both."""
    values = {
        ("a", "t"): (0.10, 0.20, 0.6, 0.8),
        ("a", "u"): (0.30, 0.30, 0.5, 0.5),
        ("b", "t"): (0.20, 0.22, 0.9, 0.7),
        ("b", "u"): (0.10, 0.12, 0.6, 0.8),
        ("trace_plus", "t"): (0.12, 0.14, 0.9, 0.9),
        ("trace_plus", "u"): (0.12, 0.14, 0.7, 0.7),
        ("p_true", "t"): (0.01, 0.01, 1.0, 1.0),
    } | dict(changes)
    return rows(
        [
            ("m", task, estimator, split, metric, four[2 * (metric == "auroc") + split])
            for (estimator, task), four in values.items()
            for metric in ("brier", "auroc")
            for split in (0, 1)
        ]
    )


def main(metrics, entries=SMALL, tasks=("u", "t")):
    return main_table(metrics, entries, {"m": "M"}, NAMES, {"model": "m", "tasks": tasks})


def main_table(metrics, entries, models, tasks, study):
    frames = synthetic.frames(metrics, entries, main=study)
    return main_comparison.table(
        replace(synthetic.settings(entries, models, tasks, main=study), frames=frames)
    )


def cross_table(metrics, accuracy, entries, models, tasks, study):
    frames = synthetic.frames(metrics, entries, cross=study) | {"accuracy": accuracy}
    return cross_model.table(
        replace(synthetic.settings(entries, models, tasks, cross=study), frames=frames)
    )


def cross(metrics, entries=SMALL, accuracy=None):
    if accuracy is None:
        accuracy = pl.DataFrame(
            {"model": ["m", "m"], "task": ["t", "u"], "n": [4, 4], "correct": [1, 2]}
        ).with_columns(accuracy=pl.col("correct") / pl.col("n"), unanswered=0, without_entropy=0)
    study = {"models": ["m"], "tasks": ["t", "u"]}
    return cross_table(metrics, accuracy, entries, {"m": "M"}, NAMES, study)


def read(table):
    return {row["label"]: row for row in csv_module.DictReader(io.StringIO(render_csv(table)))}


def emphasis(table, key):
    index = [column.keys[0] for column in table.columns].index(key)
    return [row[index].emphasis for row in table.rows]


def test_main_comparison_averages_splits_then_tasks():
    found = read(main(small()))
    assert list(found)[:3] == ["A", "B", "TRACE+"]
    assert float(found["A"]["t_brier"]) == pytest.approx(0.15)
    assert float(found["A"]["t_brier_sd"]) == pytest.approx(stdev([0.1, 0.2]))
    assert float(found["A"]["average_brier"]) == pytest.approx((0.15 + 0.30) / 2)
    assert float(found["B"]["average_auroc"]) == pytest.approx((0.8 + 0.7) / 2)
    assert float(found["A"]["average_brier_sd"]) == pytest.approx(stdev([0.2, 0.25]))
    assert found["A"]["t_auroc_undefined_splits"] == "0"


def test_main_comparison_marks_best_and_second():
    table = main(small())
    assert emphasis(table, "t_brier")[:3] == ["second", None, "best"]
    assert emphasis(table, "u_brier")[:3] == [None, "best", "second"]
    assert emphasis(table, "u_auroc")[:3] == ["second", "best", "best"]


def test_tasks_are_alphabetical_and_groups_follow_the_families():
    table = main(small())
    assert [c.group for c in table.columns] == [
        "",
        *["Task <1>"] * 2,
        *["Task & 2"] * 2,
        *["Avg."] * 2,
    ]
    assert [group.title for group in table.groups][:3] == [
        "Token- and sequence-level confidence baselines",
        "Beam-distribution baselines",
        "",
    ]
    study = {"model": "tiny_a", "tasks": list(TASKS)}
    every = main_table(synthetic.study(splits=2), ENTRIES, MODELS, TASKS, study)
    assert every.groups[1].title == "Trajectory and beam-distribution baselines"
    assert r"A~\citep{key_a}" in render_latex(table)
    assert r"\citep{xu2026trace}" not in render_latex(table)


def test_undefined_splits_are_left_out_and_counted():
    table = main(small({("b", "t"): (0.2, 0.22, 0.9, None)}))
    found = read(table)
    assert float(found["B"]["t_auroc"]) == pytest.approx(0.9)
    assert found["B"]["t_auroc_undefined_splits"] == "1"
    assert any("AUROC on Task <1> (1 of 2 splits)" in note for note in table.footnotes)
    assert r"0.900}$\dagger$" in render_latex(table)


def test_an_estimator_without_a_value_on_a_task_has_a_dash_and_no_average():
    table = main(small({("b", "t"): (0.2, 0.22, None, float("nan"))}))
    found = read(table)
    assert found["B"]["t_auroc"] == found["B"]["average_auroc"] == ""
    assert float(found["A"]["average_auroc"]) == pytest.approx(0.6)
    assert any("AUROC on Task <1> (2 of 2 splits)" in note for note in table.footnotes)
    assert r"0.210 & --$\dagger$ & " in render_latex(table)


def test_a_task_undefined_for_all_is_left_out_of_the_average():
    one_class = {(e, "t"): (0.1, 0.1, None, None) for e in ("a", "b", "trace_plus")}
    table = main(small(one_class))
    assert float(read(table)["B"]["average_auroc"]) == pytest.approx(0.7)
    assert any("AUROC on Task <1> (2 of 2 splits)" in note for note in table.footnotes)


def test_answers_without_a_score_are_noted():
    metrics = small().with_columns(
        n=pl.when(pl.col("estimator") == "b", pl.col("task") == "u").then(52).otherwise(65)
    )
    table = main(metrics)
    assert table.footnotes == (
        "‡ Without a score for some answers: B on Task & 2 (20.0 % of the answers).",
    )
    marked = [row[0].text for row in table.rows if any("‡" in cell.mark for cell in row)]
    assert marked == ["B"]
    compared = cross(metrics)
    assert compared.footnotes == table.footnotes
    best = [cell.text for cell in compared.rows[0] if "‡" in cell.mark]
    assert best == ["0.160", "0.750"], "B is the best baseline"


def test_a_task_without_results_is_noted_and_no_results_refused():
    assert main(small().filter(task="t")).footnotes[0] == "No results yet on Task & 2."
    with pytest.raises(InputError, match="no row for the model"):
        main(small().filter(task="none"))


def test_cross_model_takes_the_best_baseline_of_each_metric():
    table = cross(small({("a", "u"): (0.10, 0.10, 0.5, 0.5)}))
    found = read(table)["M"]
    assert float(found["accuracy"]) == pytest.approx(0.375)
    assert float(found["brier_best_baseline"]) == pytest.approx(0.125)
    assert found["brier_best_baseline_id"] == "a"
    assert float(found["auroc_best_baseline"]) == pytest.approx(0.75)
    assert found["auroc_best_baseline_id"] == "b"
    assert float(found["brier_improvement"]) == pytest.approx(0.125 - 0.13)
    assert float(found["auroc_improvement"]) == pytest.approx(0.8 - 0.75)
    assert (found["brier_wins"], found["brier_tasks"]) == ("1", "2")
    assert (found["auroc_wins"], found["auroc_tasks"]) == ("1", "2")
    assert emphasis(table, "brier_best_baseline")[0] == "best"
    assert emphasis(table, "brier_trace_plus")[0] is None
    printed = render_latex(as_in_paper(table))
    assert r"$-$0.005 & +0.050 & 1/2 & 1/2 \\" in printed
    groups = [column.group for column in table.narrow.columns]
    assert groups == [
        *[""] * 2,
        *["Against seq_logp, prespecified"] * 2,
        *["Against the selected baseline"] * 2,
        *["TRACE+"] * 2,
        *["Best Non-TRACE"] * 2,
    ], "what could have been chosen comes before the oracle"
    assert table.rows[0][-1].text == "3/8"
    assert any("§" in cell.mark for cell in table.rows[0]), "no support for a win"


def right_answers(*lacks, n=1000, **correct):
    """The notes on made-up accuracies: so many of n answers right, by task."""
    lacks = lacks or (0, 0)
    rows = [("m", task, n, right, right / n, *lacks, 0) for task, right in correct.items()]
    accuracy = pl.DataFrame(rows, schema=ACCURACY, orient="row")
    study = {"model": "m", "tasks": sorted(correct)}
    settings = synthetic.settings(SMALL, {"m": "M"}, NAMES, main=study)
    return count_notes(replace(settings, frames={"accuracy": accuracy}))


def test_right_answers_are_counted_and_too_few_are_said_to_be():
    # Of answers that are half right a fit of one weight needs 75, of eight 599.
    assert needed_answers(1, 0.5) == pytest.approx(1 / (0.1 * -np.log(1 - 0.1125 / 0.9)))
    assert needed_answers(8, 0.5) == pytest.approx(599, abs=1)
    assert right_answers(n=2000, t=1000, u=900) == [
        "Correct answers (accuracy): Task <1> 1000 of 2000 (0.500); Task & 2 900 of 2000 (0.450)."
    ]
    _, warning = right_answers(t=500, u=1000)
    assert warning == (
        "Too few calibration answers for 8 weights (Riley et al. 2020, overfitting of at most "
        "10 %): of Task <1>'s 1000, 350 calibrate (175 of the rarer class), where about 599 are "
        "needed; Task & 2 has answers of one class only. Label more answers, or compare scores that "
        "fit one weight."
    )
    assert right_answers(4, 900, t=1000, n=2000)[1:] == [
        "Questions without an answer in the files: Task <1> (4 of 2004).",
        "– Answers without the entropies that TRACE needs: Task <1> (900 of 2000).",
    ]
    assert any(note.startswith("Correct answers") for note in main(small()).notes)
    assert cross(small()).rows[0][-1].text == "3/8"


def test_equal_values_are_no_win():
    table = cross(small({("trace_plus", "u"): (0.10, 0.12, 0.7, 0.7)}))
    assert read(table)["M"]["brier_wins"] == "1"
    assert read(table)["M"]["auroc_wins"] == "1"


def test_overall_is_the_mean_over_models_and_the_sum_of_wins():
    metrics = synthetic.study(splits=3)
    study = {"models": list(MODELS), "tasks": list(TASKS)}
    table = cross_table(metrics, synthetic.accuracy(), ENTRIES, MODELS, TASKS, study)
    *models, overall = read(table).values()
    assert [row["model"] for row in models] == list(MODELS), "in the order of the configuration"
    for key in ("brier_improvement", "auroc_trace_plus", "accuracy"):
        mean = sum(float(row[key]) for row in models) / 3
        assert float(overall[key]) == pytest.approx(mean)
    assert int(overall["auroc_wins"]) == sum(int(row["auroc_wins"]) for row in models)
    assert overall["auroc_tasks"] == "12"


@pytest.mark.parametrize(
    ("entries", "note"), [([A, B], "TRACE+ is not among"), ([PLUS], "No baseline is among")]
)
def test_a_missing_side_is_noted(entries, note):
    table = cross(small(), entries)
    assert note in table.footnotes[0]
    assert read(table)["M"]["brier_improvement"] == ""
    assert "–" in render_html(table)


def test_undefined_auroc_is_noted_across_models():
    one_class = {(e, "t"): (0.1, 0.1, None, None) for e in ("a", "b", "trace_plus")}
    table = cross(small(one_class))
    assert read(table)["M"]["auroc_tasks"] == "1"
    assert any("M on Task <1> (2 of 2 splits)" in note for note in table.footnotes)


@pytest.mark.parametrize("render", [render_latex, render_csv, render_html])
def test_order_of_rows_and_of_the_config_does_not_matter(render):
    metrics = synthetic.study(splits=3)
    study = {"models": sorted(MODELS), "tasks": sorted(TASKS)}
    other = {"models": sorted(MODELS)[::-1], "tasks": sorted(TASKS)[::-1]}
    shuffled = metrics.sample(fraction=1, shuffle=True, seed=3)
    accuracy = synthetic.accuracy()
    first = cross_table(metrics, accuracy, ENTRIES, MODELS, TASKS, study)
    second = cross_table(shuffled, accuracy.reverse(), ENTRIES, MODELS, TASKS, other)
    assert render(first) == render(second)
    wanted = [{"model": "tiny_a", "tasks": part["tasks"]} for part in (study, other)]
    pair = [
        main_table(frame, ENTRIES, MODELS, TASKS, part)
        for frame, part in zip((metrics, shuffled), wanted, strict=True)
    ]
    assert render(pair[0]) == render(pair[1])


def test_tables_say_how_many_beams_their_scores_read():
    study = {"model": "tiny_a", "tasks": list(TASKS)}
    shown = settings(ENTRIES, MODELS, TASKS, {"beams": 10}, main=study)
    [note] = beam_notes(ENTRIES, shown)
    assert "K = 10 beams" in note
    assert not beam_notes([entry for entry in ENTRIES if entry.family != "beam"], shown)
