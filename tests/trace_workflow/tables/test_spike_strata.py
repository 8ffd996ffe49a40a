"""The spike tables and figure, from analyses of made-up answers."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from support import synthetic
from support.synthetic import MODELS, TASKS
from trace_workflow.analyses.averages import average_over_splits
from trace_workflow.analyses.spike_modeling import FEATURE_SETS as ANALYSED
from trace_workflow.analyses.spike_modeling import MODELING
from trace_workflow.analyses.spike_strata import spike_quintiles, spike_strata
from trace_workflow.config import paper
from trace_workflow.figures import figure_style
from trace_workflow.figures.spike_evidence import draw as spike_evidence
from trace_workflow.figures.spike_evidence import message
from trace_workflow.tables import spikes
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_with_paper
from trace_workflow.tables.spikes import FEATURE_SETS
from tracecal.statistics.resampling import Resampling

PAPER = paper.read()
QWEN = {"qwen2.5-7b-instruct": "Qwen"}
FOUR = {slug: slug.upper() for slug in ("mlqa", "svamp", "triviaqa", "truthfulqa")}


BOOTSTRAP = Resampling(0, 100, 0.95)


def spike_strata_table(frame, models, tasks, study):
    main = study | {"model": next(iter(models))}
    settings = synthetic.settings([], models, tasks, main=main)
    frames = synthetic.answered(models, tasks) | {"spike_strata": frame}
    return spikes.spike_strata(replace(settings, frames=frames))


def spike_modeling_table(frame, models, tasks, study):
    main = study | {"model": next(iter(models))}
    means = average_over_splits(frame, ["model", "tasks", "features", "metric"])
    settings = synthetic.settings([], models, tasks, main=main)
    frames = synthetic.answered(models, tasks) | {"spike_modeling_averages": means}
    return spikes.spike_modeling(replace(settings, frames=frames))


def scoped(frame, model="tiny_a", tasks=TASKS):
    return frame.with_columns(model=pl.lit(model), tasks=pl.lit(" ".join(sorted(tasks))))


def answers(n=240, seed=0, gap=1.0):
    rng = np.random.default_rng(seed)
    mean = rng.gamma(2, size=n)
    excess = gap * rng.gamma(1, size=n)
    return pl.DataFrame(
        {
            "task": "t",
            "example_id": [f"e{i:03}" for i in range(n)],
            "group_id": [f"e{i:03}" for i in range(n)],
            "correct": rng.random(n) < 0.5,
            "mean_risk": mean,
            "spike_gap": excess,
            "mean_entropy": mean,
            "window_entropy": mean + excess,
            "len_norm_logp": np.exp(-mean),
            "trace_risk": mean + excess,
        }
    )


def modeling(splits=4, undefined=()):
    rows = [
        (name, split, metric, None if metric in undefined else 0.5 + 0.01 * split + 0.1 * i, 70)
        for i, name in enumerate(ANALYSED)
        for split in range(splits)
        for metric in ("auroc", "brier")
    ]
    return scoped(pl.DataFrame(rows, schema=MODELING, orient="row"))


def strata_table(frame=None, **scope):
    found = scoped(spike_strata(answers() if frame is None else frame, BOOTSTRAP), **scope)
    names = (QWEN, FOUR) if scope else (MODELS, TASKS)
    return spike_strata_table(found, *names, {"tasks": sorted(names[1])})


def test_strata_stand_in_the_papers_order_with_their_counts():
    rows = pl.read_csv(render_csv(strata_table()).encode())
    assert rows["n"].to_list() == [40] * 6
    assert rows["risk"].to_list() == ["Low", "Low", "Mid", "Mid", "High", "High"]
    assert rows["spike"].to_list() == ["Low", "High"] * 3
    assert len(strata_table().groups) == 1


def test_every_rate_stands_beside_its_interval():
    table = strata_table()
    rows = pl.read_csv(render_csv(table).encode()).to_dicts()
    assert table.columns[-1].label == "95 % interval"
    assert [row[-1].text for row in table.rows] == [
        f"{row['incorrect_rate_low']:.3f} to {row['incorrect_rate_high']:.3f}" for row in rows
    ]


def test_an_empty_stratum_is_a_dash_with_a_note():
    table = strata_table(answers(gap=0.0))
    for render in (render_html, render_latex):
        assert "has a gap of 0" in render(table)
    assert "has a gap of 0" not in render_html(strata_table())


def test_modelling_prints_means_and_spreads_by_hand():
    table = spike_modeling_table(modeling(), MODELS, TASKS, {"tasks": sorted(TASKS)})
    rows = {row["features"]: row for row in pl.read_csv(render_csv(table).encode()).to_dicts()}
    assert list(rows) == list(FEATURE_SETS) == list(ANALYSED)
    assert rows["spike_gap"]["auroc"] == pytest.approx(0.5 + 0.015 + 0.2)
    assert rows["spike_gap"]["auroc_sd"] == pytest.approx(np.std([0, 0.01, 0.02, 0.03], ddof=1))
    assert r"\textbf{0.915 $\pm$ 0.013}" in render_latex(table), "the best AUROC is bold"
    assert r"\textbf{0.515 $\pm$ 0.013}" in render_latex(table), "as is the lowest Brier score"


def test_an_undefined_metric_is_a_dash_with_a_note():
    table = spike_modeling_table(
        modeling(undefined=("auroc",)), MODELS, TASKS, {"tasks": sorted(TASKS)}
    )
    assert "are all correct, all wrong or" in render_html(table)
    assert pl.read_csv(render_csv(table).encode())["auroc"].null_count() == len(ANALYSED)


def test_a_task_without_results_is_named():
    study = {"tasks": sorted(TASKS)}
    found = scoped(spike_strata(answers(), BOOTSTRAP), tasks=["svamp", "mlqa"])
    assert "No results yet on TriviaQA and" in render_html(
        spike_strata_table(found, MODELS, TASKS, study)
    )


@pytest.mark.parametrize("name", ["spike_strata", "spike_modeling"])
def test_every_published_number_meets_a_row_and_a_column(name):
    scope = {"model": "qwen2.5-7b-instruct", "tasks": FOUR}
    table = strata_table(**scope)
    if name == "spike_modeling":
        frame = scoped(modeling().drop("model", "tasks"), **scope)
        table = spike_modeling_table(frame, QWEN, FOUR, {"tasks": sorted(FOUR)})
    header, *rows = render_csv(table).splitlines()
    ours = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
    beside = compare_with_paper(name, ours, PAPER[name])
    assert len(list(beside.rows)) == len(PAPER[name])


def figure(frame=None):
    made = answers() if frame is None else frame
    return spike_evidence(spike_strata(made, BOOTSTRAP), spike_quintiles(made, BOOTSTRAP))


def test_the_figure_draws_the_strata_and_the_fifths():
    frame = answers()
    strata, fifths, percentiles = figure(frame).axes
    rates = spike_strata(frame, BOOTSTRAP)
    quintiles = spike_quintiles(frame, BOOTSTRAP)
    for axes, wanted in (
        (strata, rates.sort("spike_stratum", descending=True)),
        (fifths, quintiles),
    ):
        bars = [bar.get_height() for bar in axes.patches]
        assert bars == pytest.approx(wanted["incorrect_rate"].to_list())
        assert axes.get_ylim() == (0, 1)
    drawn = [list(line.get_ydata()) for line in percentiles.lines]
    columns = [name for name in quintiles.columns if name.endswith("_percentile")]
    assert sorted(drawn) == sorted(quintiles[name].to_list() for name in columns)


def test_the_figure_says_how_many_answers_each_stratum_holds():
    frame = answers()
    strata, fifths, percentiles = figure(frame).axes
    for axes, rates in (
        (strata, spike_strata(frame, BOOTSTRAP)),
        (fifths, spike_quintiles(frame, BOOTSTRAP)),
        (percentiles, spike_quintiles(frame, BOOTSTRAP)),
    ):
        said = {int(n) for n in re.findall(r"\d+", axes.get_xlabel())}
        assert said == {rates["n"].min(), rates["n"].max()}


def test_the_figure_fits_its_column_and_nothing_is_cut():
    drawn = figure()
    assert drawn.get_figwidth() == figure_style.TEXT_WIDTH
    drawn.draw_without_rendering()
    box = drawn.get_tightbbox()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= figure_style.TEXT_WIDTH
    assert box.y1 <= drawn.get_figheight()


def test_the_figure_does_with_empty_strata():
    figure(answers(gap=0.0))
    figure(answers(n=2))


def test_the_same_answers_give_the_same_bytes(tmp_path):
    for name, frame in (
        ("a", answers()),
        ("b", answers().sample(fraction=1, shuffle=True, seed=1)),
    ):
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(figure(frame), *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_the_figures_title_gives_the_error_rates_of_the_lowest_mean_risk():
    strata = spike_strata(answers(), BOOTSTRAP)
    rows = strata.filter(risk_stratum="low")
    rates = dict(rows.select("spike_stratum", "incorrect_rate").iter_rows())
    assert message(strata) == (
        f"At low mean risk {100 * rates['high']:.0f} % of answers with a high spike gap are wrong, "
        f"{100 * rates['low']:.0f} % with a low one"
    )
    assert message(strata.filter(spike_stratum="low")) == ""
