"""The tables and the figure of the robustness analyses, from made-up values."""

from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

import numpy as np
import polars as pl
import pytest

from support import synthetic
from trace_workflow.analyses.averages import average_over_splits, averages
from trace_workflow.analyses.calibration_size import SHARES
from trace_workflow.analyses.length_stratified import STRATA
from trace_workflow.analyses.reliability_selective import BINS, CURVE, POOLED
from trace_workflow.config import paper
from trace_workflow.figures import figure_style
from trace_workflow.figures.robustness_panels import (
    COVERAGES,
    EstimatorPoint,
    contrasted_entries,
    corrected_interval,
    gainer_of,
    message,
    metric_gains,
    reliability,
    risk_gains,
)
from trace_workflow.figures.robustness_panels import draw as robustness_panels
from trace_workflow.figures.study_averages import select_models
from trace_workflow.tables.cross_task_transfer import ALONE
from trace_workflow.tables.csv_file import read_rows, render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_with_paper
from trace_workflow.tables.robustness import POOLED_METRICS as METRICS
from tracecal.estimators.estimator import Entry
from tracecal.estimators.registry import ESTIMATORS, REPRESENTATIVE

MODEL = "qwen2.5-7b-instruct"
PAPER_TASKS = {"mlqa": "MLQA", "svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TruthfulQA"}
STUDY = {"model": MODEL, "tasks": sorted(PAPER_TASKS)}
LABELS = {MODEL: "Qwen2.5-7B-Instruct"}
COMPARED = [
    Entry(one.id, one.label, one.group, one.role, one.citation)
    for one in ESTIMATORS
    if one.role in ("baseline", "trace")
]
FEW = [entry for entry in COMPARED if entry.id in REPRESENTATIVE]


def metrics(entries=FEW, seed=0, tasks=PAPER_TASKS):
    return synthetic.study(models=LABELS, tasks=tasks, entries=entries, splits=4, seed=seed)


def in_parts(column, parts, tasks=PAPER_TASKS):
    frames = (metrics(seed=seed, tasks=tasks) for seed in range(len(parts)))
    return pl.concat(
        frame.with_columns(pl.lit(part).alias(column))
        for frame, part in zip(frames, parts, strict=True)
    )


def pooled():
    rows = [
        (
            MODEL,
            " ".join(sorted(PAPER_TASKS)),
            entry.id,
            split,
            metric,
            0.1 * place + 0.01 * split,
            9,
        )
        for entry in FEW
        for split in range(3)
        for place, metric in enumerate(METRICS)
    ]
    return pl.DataFrame(rows, schema=POOLED, orient="row")


def curves():
    bins = [
        (entry.id, split, k, 20, (k + 0.5) / 10, (k + 0.3 + 0.4 * split) / 10)
        for entry in FEW
        for split in (0, 1)
        for k in range(10)
    ]
    risks = [
        (entry.id, split, percent / 100, percent / 200 + 0.1 * split)
        for entry in FEW
        for split in (0, 1)
        for percent in range(1, 101)
    ]
    schemas = (BINS, CURVE)
    return [
        pl.DataFrame(rows, schema=schema, orient="row")
        for rows, schema in zip((bins, risks), schemas, strict=True)
    ]


INTERVALS = synthetic.intervals(
    *((None, MODEL, task, "brier", low, 0.4) for task, low in (("svamp", 0.001), ("mlqa", -0.1)))
)
SIZES, LENGTHS = in_parts("calibration_share", SHARES), in_parts("stratum", STRATA)
TABLES = {
    "calibration_size": ("calibration_size_averages", SIZES),
    "reliability_selective": ("reliability_selective_averages", pooled()),
    "length_stratified": ("length_stratified_averages", LENGTHS),
    "cross_task_transfer": ("cross_task_transfer_improvements", metrics(COMPARED)),
}
DIVIDED = {"calibration_size": ["calibration_share"], "length_stratified": ["stratum"]}


def averaged(name, frame, study):
    """The analysis' averages of its measurements."""
    if name == "reliability_selective":
        return average_over_splits(frame, ["model", "tasks", "estimator", "metric"])
    if name in DIVIDED:
        return averages(frame, {"main": study}, by=DIVIDED[name])
    means = averages(synthetic.with_picked(frame, COMPARED), {"main": study})
    return synthetic.improvements(means, COMPARED, {"main": study}, INTERVALS)


def table(name, frame=None, study=STUDY, tasks=PAPER_TASKS, entries=COMPARED):
    analysis, own = TABLES[name]
    means = averaged(name, own if frame is None else frame, study)
    settings = synthetic.settings(entries, LABELS, tasks, main=study)
    frames = synthetic.answered([MODEL], tasks) | {analysis: means}
    return synthetic.make_of(name)(replace(settings, frames=frames))


def lines(name, **changed):
    return list(pl.read_csv(render_csv(table(name, **changed)).encode()).iter_rows(named=True))


@pytest.mark.parametrize("name", TABLES)
def test_every_number_of_the_paper_finds_its_own(name, tmp_path):
    (tmp_path / "t.csv").write_text(render_csv(table(name)))
    found = paper.read()[name]
    compared = compare_with_paper(name, read_rows(tmp_path / "t.csv"), found)
    assert len(list(compared.rows)) == len(found)
    assert compared.frame["spread"].null_count() == 0


@pytest.mark.parametrize("name", TABLES)
def test_row_order_changes_nothing(name):
    mixed = TABLES[name][1].sample(fraction=1, shuffle=True, seed=2)
    for render in (render_csv, render_html, render_latex):
        assert render(table(name, frame=mixed)) == render(table(name))


def test_calibration_sizes_are_means_over_tasks_and_ranked_within_each_size():
    row = next(
        one
        for one in lines("calibration_size")
        if (one["calibration_share"], one["metric"]) == (0.2, "auroc")
    )
    own = SIZES.filter(calibration_share=0.2, estimator="trace_plus", metric="auroc")
    by_split = [part["value"].mean() for _, part in own.group_by("split")]
    assert row["trace_plus"] == pytest.approx(own["value"].mean())
    assert row["trace_plus_sd"] == pytest.approx(stdev(by_split))
    made = table("calibration_size")
    first = [[cell.text for cell in row[:2]] for row in made.rows[:4]]
    assert first == [["5%", "Brier"], ["", "AUROC"], ["10%", "Brier"], ["", "AUROC"]]
    for row, values in zip(made.rows, made.frame.iter_rows(named=True), strict=True):
        choose = min if values["metric"] == "brier" else max
        best = choose(round(values[entry.id], 3) for entry in FEW)
        bold = {float(cell.text) for cell in row if cell.emphasis == "best"}
        assert bold == {best}


def test_pooled_metrics_are_means_over_splits():
    row = lines("reliability_selective", entries=FEW)[0]
    assert row["risk_at_90"] == pytest.approx(0.5 + fmean([0, 0.01, 0.02]))
    assert row["ece_sd"] == pytest.approx(stdev([0, 0.01, 0.02]))


def test_strata_stand_side_by_side():
    row = lines("length_stratified")[-1]
    own = LENGTHS.filter(stratum="long", estimator=row["estimator"], metric="brier")
    assert row["long_brier"] == pytest.approx(own["value"].mean())


def test_transfer_takes_the_best_baseline_of_each_target_and_metric():
    frame = TABLES["cross_task_transfer"][1]
    baselines = [entry.id for entry in COMPARED if entry.role == "baseline"]
    for row in lines("cross_task_transfer"):
        own = frame.filter(task=row["task"], metric="brier")
        means = dict(own.group_by("estimator").agg(pl.col("value").mean()).iter_rows())
        best = min(baselines, key=means.get)
        assert row["brier_best_baseline_id"] == best
        assert row["brier_improvement"] == pytest.approx(means[best] - means["trace_plus"])
        both = own.pivot("estimator", index="split", values="value")
        gains = (both[best] - both["trace_plus"]).to_list()
        assert row["brier_improvement_sd"] == pytest.approx(stdev(gains))


def test_transfer_marks_the_wins_that_their_intervals_do_not_support():
    frame = TABLES["cross_task_transfer"][1]
    better = pl.when(estimator="trace_plus", metric="brier").then(pl.lit(0.001))
    made = table("cross_task_transfer", frame.with_columns(value=better.otherwise("value")))
    gain = [column.keys[0] for column in made.columns].index("brier_picked_improvement")
    marks = dict(zip(made.frame["task"], (row[gain].mark for row in made.rows), strict=True))
    assert marks == {"mlqa": "§", "svamp": "", "triviaqa": "§", "truthfulqa": "§"}
    low = dict(
        pl.read_csv(render_csv(made).encode())["task", "brier_picked_improvement_low"].rows()
    )
    assert low == {"mlqa": -0.1, "svamp": 0.001, "triviaqa": None, "truthfulqa": None}
    assert any(note.startswith("Intervals (95 %)") for note in made.notes)


def test_one_task_has_a_sentence_instead_of_rows():
    study = {"model": MODEL, "tasks": ["svamp"]}
    made = table("cross_task_transfer", metrics().clear(), study)
    assert list(made.rows) == []
    for render in (render_html, render_latex):
        assert ALONE in render(made)


@pytest.mark.parametrize("left", ["trace_plus", "baseline"])
def test_transfer_without_a_side_says_so(left):
    frame = TABLES["cross_task_transfer"][1]
    kept = [entry for entry in COMPARED if (entry.id == "trace_plus") == (left == "baseline")]
    frame = frame.filter(pl.col("estimator").is_in([entry.id for entry in kept]))
    made = table("cross_task_transfer", frame, entries=kept)
    assert any("so there is nothing to compare" in note for note in made.footnotes)


def undefined(frame, **where):
    conditions = [pl.col(key) == value for key, value in where.items()]
    hidden = pl.all_horizontal(conditions)
    return frame.with_columns(value=pl.when(hidden).then(None).otherwise("value"))


def test_what_is_undefined_is_left_out_and_named():
    frame = undefined(LENGTHS, stratum="short", metric="auroc", task="svamp")
    made = table("length_stratified", frame)
    assert any(
        "AUROC of short answers" in n and "SVAMP (4 of 4 splits)" in n for n in made.footnotes
    )
    own = LENGTHS.filter(
        pl.col("task") != "svamp", stratum="short", metric="auroc", estimator="trace"
    )
    row = next(r for r in lines("length_stratified", frame=frame) if r["estimator"] == "trace")
    assert row["short_auroc"] == pytest.approx(own["value"].mean())
    empty = undefined(LENGTHS, stratum="short")
    assert {row["short_brier"] for row in lines("length_stratified", frame=empty)} == {None}


SHARE = 0.35


def draw(sizes=SIZES, stratified=LENGTHS, entries=FEW):
    sizes, stratified = averaged_parts(sizes, stratified)
    return robustness_panels(sizes, *curves(), stratified, entries, STUDY, SHARE)


def averaged_parts(sizes, lengths):
    """The averages of both analyses."""
    return averaged("calibration_size", sizes, STUDY), averaged("length_stratified", lengths, STUDY)


def test_an_interval_over_splits_allows_for_their_overlap():
    values = [0.1, 0.2, 0.4, 0.3, None]
    mean, half = corrected_interval(values, 0.35)
    assert mean == pytest.approx(0.25)
    error = stdev(values[:4]) * sqrt(1 / 4 + 0.65 / 0.35)
    assert half == pytest.approx(3.182446 * error)  # t of 3 degrees of freedom
    assert corrected_interval(values, 0.05)[1] > 2 * half
    assert corrected_interval([0.5], 0.35) == (0.5, None)
    assert corrected_interval([None], 0.35) is None


def test_corrected_intervals_hold_their_mean_where_splits_share_answers():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        answers = rng.random(60)
        splits = [rng.permutation(60)[21:] for _ in range(20)]
        mean, half = corrected_interval([answers[split].mean() for split in splits], 0.35)
        covered += abs(mean - 0.5) <= half
    assert covered / 300 >= 0.93


def test_gains_are_paired_split_by_split():
    sizes, _ = averaged_parts(SIZES, LENGTHS)
    selected = select_models(sizes, FEW, "main", STUDY)
    own, rivals = FEW[-1], FEW[:-1]
    marks = list(metric_gains(selected, "calibration_share", {0.2: 0.2}, "brier", own, rivals))
    assert [mark.entry for mark in marks] == rivals
    frame = SIZES.filter(calibration_share=0.2, metric="brier")
    means = frame.group_by("estimator", "split").agg(pl.col("value").mean())
    both = means.sort("split").pivot("estimator", index="split", values="value")
    for mark in marks:
        found = corrected_interval((both[mark.entry.id] - both[own.id]).to_list(), 0.2)
        assert (mark.y, mark.half_width) == (pytest.approx(found[0]), pytest.approx(found[1]))


def test_reliability_is_of_the_splits_own_bins():
    rows = [
        ("mars", 0, 1, 100, 0.1, 0.2),
        ("mars", 1, 1, 100, 0.3, 0.0),
        ("mars", 0, 4, 90, 0.9, 1.0),
    ]
    bins = pl.DataFrame(rows, schema=BINS, orient="row")
    first, last = reliability(bins, FEW, SHARE)
    assert (first.entry.id, first.x, first.y) == ("mars", pytest.approx(0.2), pytest.approx(0.1))
    assert first.half_width == pytest.approx(corrected_interval([0.2, 0.0], SHARE)[1])
    assert (last.y, last.half_width) == (1.0, None)
    assert "n ≈ 20 in a bin" in draw().axes[2].get_title(loc="left")


def test_risk_is_compared_with_trace_plus_in_the_same_split():
    rows = [
        ("mars", 0, 0.5, 0.30),
        ("mars", 1, 0.5, 0.50),
        ("mars", 0, 0.01, 1.0),
        ("trace_plus", 0, 0.5, 0.25),
        ("trace_plus", 1, 0.5, 0.35),
    ]
    curve = pl.DataFrame(rows, schema=CURVE, orient="row")
    own = gainer_of(FEW)
    (mars,) = risk_gains(curve, own, [entry for entry in FEW if entry != own], SHARE)
    assert (mars.entry.id, mars.x, mars.y) == ("mars", COVERAGES.index(0.5), pytest.approx(0.1))
    assert mars.half_width == pytest.approx(corrected_interval([0.05, 0.15], SHARE)[1])


def test_without_trace_plus_the_last_one_is_compared_with():
    assert gainer_of(FEW).id == "trace_plus"
    assert gainer_of(FEW[:2]) == FEW[1]


def test_six_panels_say_what_changes_and_the_legend_names_what_is_drawn():
    figure = draw()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title[:3] for title in titles] == ["(a)", "(b)", "(c)", "(d)", "(e)", "(f)"]
    below = [
        (title[4:], axes.get_xlabel()) for title, axes in zip(titles, figure.axes, strict=True)
    ]
    assert len(set(below)) == 6
    keys = figure.legends[0]
    names = [text.get_text().strip() for text in keys.get_texts()]
    assert names == [one.label for one in contrasted_entries(FEW)] and len(names) == 3
    assert len({one.get_marker() for one in keys.get_lines()}) == 3


def test_the_title_counts_the_intervals_above_and_below_zero():
    entry = FEW[0]
    gains = [
        EstimatorPoint(entry, 0, y, half_width)
        for y, half_width in ((0.2, 0.1), (0.05, 0.1), (-0.3, 0.1), (0.2, 0.15), (0.9, None))
    ]
    assert message(gains, entry) == (
        f"Above zero {entry.label} is better: 2 of 4 intervals are above, 1 below, and 1 contain zero"
    )
    assert message([], entry) == ""


def test_no_line_joins_categories():
    for axes in draw().axes:
        joined = [line for line in axes.lines if line.get_linestyle() not in ("None", ":")]
        assert all(len(set(line.get_ydata())) == 1 for line in joined), "only the line at zero"


def test_the_figure_does_with_what_there_is():
    assert len(draw(entries=FEW[-1:]).axes) == 6
    assert len(draw(stratified=undefined(LENGTHS, stratum="short")).axes) == 6
    assert len(draw(sizes=undefined(SIZES, estimator="mars", metric="auroc")).axes) == 6
    nowhere = draw(undefined(SIZES, metric="auroc"), undefined(LENGTHS, metric="auroc"))
    for axes in (nowhere.axes[1], nowhere.axes[5]):
        assert [text.get_text() for text in axes.texts] == ["undefined"]


def test_the_same_data_give_the_same_bytes(tmp_path):
    for name, mix in (("a", False), ("b", True)):
        frames = [f.sample(fraction=1, shuffle=mix, seed=3) for f in (SIZES, *curves(), LENGTHS)]
        sizes, bins, curve, lengths = frames
        sizes, lengths = averaged_parts(sizes, lengths)
        figure = robustness_panels(sizes, bins, curve, lengths, FEW, STUDY, SHARE)
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(figure, *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
