"""The figures: what they show, and that the same data give the same bytes."""

import warnings
from dataclasses import replace
from xml.etree import ElementTree

import polars as pl
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from support import synthetic
from support.scripts import run_script
from support.synthetic import ENTRIES, MODELS, OPTIONS, TASKS
from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.comparisons import COMPARISONS
from trace_workflow.figures import figure_style
from trace_workflow.figures.model_landscape import best_baselines, limits
from trace_workflow.figures.model_landscape import draw as model_landscape
from trace_workflow.figures.performance_overview import draw as performance_overview
from trace_workflow.figures.performance_overview import model_points
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.table import as_in_paper
from tracecal.errors import InputError
from tracecal.estimators.estimator import Entry

METRICS = synthetic.study(splits=3)
NO_COMPARISON = pl.DataFrame(schema=COMPARISONS)
MAIN = {"model": "tiny_a", "tasks": list(TASKS)}
CROSS = {"models": list(MODELS), "tasks": ["svamp", "trivia"]}
BOTH = {"main": MAIN, "cross": CROSS}


def averaged(metrics, study):
    """The averages of a study, or of both."""
    studies = study if "main" in study else {"cross": study}
    return averages(metrics, {name: one for name, one in studies.items() if one})


def overview(metrics, entries, models, study):
    means = averaged(metrics, study)
    return performance_overview(means, entries, models, TASKS, study, NO_COMPARISON)


def landscape(metrics, entries, models, study):
    return model_landscape(averaged(metrics, study), entries, models, TASKS, study)


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_overview_lists_all_estimators_best_brier_first():
    figure = overview(METRICS, ENTRIES, MODELS, BOTH)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    chosen = METRICS.filter(model="tiny_a", metric="brier")
    means = dict(chosen.group_by("estimator").agg(pl.col("value").mean()).iter_rows())
    labels = {entry.id: entry.label for entry in ENTRIES}
    assert names == [labels[estimator] for estimator in sorted(means, key=means.get)]
    assert {"Tiny-A-Instruct", "Tiny-B-Instruct", "Tiny-C"} <= set(texts(figure))


def test_overview_says_what_each_panel_is_a_mean_of_and_draws_no_bars():
    few = METRICS.filter((pl.col("model") != "tiny_b") | (pl.col("task") != "svamp"))
    figure = overview(few, ENTRIES, MODELS, BOTH)
    below = [" ".join(axes.get_xlabel().split()) for axes in figure.axes]
    assert below[0] == "mean over MLQA, SVAMP, TriviaQA and TruthfulQA; n = 260 held-out answers"
    assert below[2] == "mean over SVAMP and TriviaQA; n = 130 held-out answers"
    # Splits are of the same answers: their deviation would be read as an interval.
    assert not any(axes.containers or axes.collections for axes in figure.axes)


def test_overview_draws_the_interval_of_each_difference_and_its_title_counts_them():
    baselines = [entry for entry in ENTRIES if entry.role == "baseline"]
    rows = [
        ("main", "tiny_a", task, metric, entry.id, 0.02, -0.01 if place == 0 else 0.01, 0.04)
        for place, entry in enumerate(baselines)
        for metric in ("brier", "auroc")
        for task in (None, "svamp")
    ]
    names = "study model task metric baseline difference low high".split()
    comparisons = pl.DataFrame(rows, schema=names, orient="row")
    means = averaged(METRICS, BOTH)
    figure = performance_overview(means, ENTRIES, MODELS, TASKS, BOTH, comparisons)
    n = len(baselines)
    assert figure.get_suptitle().replace("\n", " ") == (
        f"Tiny-A-Instruct, averaged over tasks: TRACE+ beats {n - 1} of {n} baselines by Brier and {n - 1} of {n} by AUROC"
    )
    brier, auroc, *_ = figure.axes
    for axes, sides in ((brier, (0.01, 0.02)), (auroc, (0.02, 0.01))):
        assert len(axes.collections) == n
        points = {
            line.get_ydata()[0]: line.get_xdata()[0]
            for line in axes.lines
            if line.get_ls() == "None"
        }
        places = {entry.label: place for place, entry in enumerate(baselines)}
        labels = [label.get_text() for label in brier.get_yticklabels()]
        for part in axes.collections:
            (start, height), (end, _) = part.get_segments()[0]
            if places[labels[round(height)]]:
                assert (points[height] - start, end - points[height]) == pytest.approx(sides)
    lost = comparisons.with_columns(low=-0.04, high=-0.01)
    lost = performance_overview(means, ENTRIES, MODELS, TASKS, BOTH, lost).get_suptitle()
    assert f"beats 0 of {n} baselines by Brier and loses to {n}" in lost.replace("\n", " ")


def test_overview_without_a_cross_study_has_two_panels():
    assert len(overview(METRICS, ENTRIES, MODELS, {**BOTH, "cross": None}).axes) == 2


def test_cross_dots_take_the_best_baseline():
    dots = model_points(averaged(METRICS, CROSS), ENTRIES, CROSS)["tiny_b"]
    baselines = [entry.id for entry in ENTRIES if entry.role == "baseline"]
    wanted = METRICS.filter(
        pl.col("model") == "tiny_b",
        pl.col("metric") == "auroc",
        pl.col("task").is_in(CROSS["tasks"]),
        pl.col("estimator").is_in(baselines),
    )
    best = wanted.group_by("estimator").agg(pl.col("value").mean())["value"].max()
    assert dots[0].auroc == pytest.approx(best)
    assert [dot.look for dot in dots] == [
        figure_style.BEST_BASELINE,
        figure_style.TRACE,
        figure_style.TRACE_PLUS,
    ]


@pytest.mark.parametrize("count", range(1, 9))
def test_landscape_has_a_panel_per_model(count):
    names = {f"m{i}": f"Model {i}" for i in range(count)}
    metrics = synthetic.study(models=names, splits=2)
    figure = landscape(metrics, ENTRIES, names, {"models": list(names), "tasks": ["svamp"]})
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == list(names.values())
    assert {"TRACE", "TRACE+"} <= {text.get_text() for text in figure.legends[0].get_texts()}
    assert "n = 65 held-out answers" in figure.legends[0].get_title().get_text()


def test_landscape_lines_stand_at_the_best_baselines():
    study = {"models": ["tiny_a"], "tasks": ["svamp"]}
    figure = landscape(METRICS, ENTRIES, MODELS, study)
    means = (
        METRICS.filter(model="tiny_a", task="svamp")
        .group_by("estimator", "metric")
        .agg(pl.col("value").mean())
    )
    baselines = [entry.id for entry in ENTRIES if entry.role == "baseline"]
    means = means.filter(pl.col("estimator").is_in(baselines))
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert dotted[0].get_xdata()[0] == pytest.approx(means.filter(metric="brier")["value"].min())
    assert dotted[1].get_ydata()[0] == pytest.approx(means.filter(metric="auroc")["value"].max())
    labels = {entry.id: entry.label for entry in ENTRIES}
    lowest = means.filter(metric="brier").sort("value")["estimator"][0]
    highest = means.filter(metric="auroc").sort("value")["estimator"][-1]
    (named,) = figure.axes[0].texts
    assert named.get_text() == f"best Brier: {labels[lowest]}\nbest AUROC: {labels[highest]}"


def test_landscape_names_stand_above_the_panels_where_they_hide_no_point():
    figure = landscape(METRICS, ENTRIES, MODELS, CROSS)
    figure.draw_without_rendering()
    for axes in (axes for axes in figure.axes if axes.get_visible()):
        (named,) = axes.texts
        box, title = named.get_window_extent(), axes._left_title.get_window_extent()
        assert axes.bbox.y1 <= box.y0 and box.y1 <= title.y0 + 1
        assert box.x1 <= figure.bbox.x1


def test_what_lies_far_off_stands_hollow_at_the_edge_and_the_others_fill_the_panel():
    auroc = {"entropy_slope": 0.2, "seq_logp": 0.66, "trace": 0.72, "trace_plus": 0.74}
    metrics = METRICS.with_columns(
        value=pl.when(pl.col("metric") == "auroc")
        .then(pl.col("estimator").replace_strict(auroc, default=0.7))
        .otherwise("value")
    )
    axes = landscape(metrics, ENTRIES, MODELS, CROSS).axes[0]
    points = [line for line in axes.lines if line.get_marker() != "None"]
    low, _ = axes.get_ylim()
    hollow = [p for p in points if p.get_markerfacecolor() == "white" and p.get_ydata()[0] == low]
    assert {p.get_ydata()[0] for p in hollow} == {low} and low > 0.5
    shown = {round(p.get_ydata()[0], 6) for p in points} - {round(low, 6)}
    assert {0.7, 0.72, 0.74} <= shown <= {0.66, 0.7, 0.72, 0.74}
    keys = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert keys[-1] == "Beyond the axes"
    assert "by AUROC ahead on 3" in axes.figure.get_suptitle().replace("\n", " ")


def test_an_axis_takes_the_middle_of_the_values_and_what_must_be_seen():
    low, high = limits([0.1, 0.69, 0.7, 0.7, 0.71, 0.72], [0.8])
    assert 0.5 < low < 0.69 and high > 0.8
    low, high = limits([0.5, 0.5], [])
    assert low < 0.5 < high


def test_figures_do_with_what_there_is():
    trace_only = [entry for entry in ENTRIES if entry.role == "trace"]
    no_auroc = METRICS.with_columns(
        value=pl.when(pl.col("metric") == "auroc").then(None).otherwise("value")
    )
    assert best_baselines([]) == (None, None)
    for metrics, entries in ((METRICS, trace_only), (METRICS, ENTRIES[:1]), (no_auroc, ENTRIES)):
        landscape(metrics, entries, MODELS, CROSS)
        overview(metrics, entries, MODELS, BOTH)
    with pytest.raises(InputError, match="no row"):
        landscape(METRICS.clear(), ENTRIES, MODELS, CROSS)


def draw(name, folder, metrics=METRICS, models=MODELS, entries=ENTRIES):
    figure = {
        "overview": lambda: overview(metrics, entries, models, BOTH),
        "landscape": lambda: landscape(metrics, entries, models, CROSS),
    }[name]()
    figure_style.save(
        figure, folder / "f.pdf", folder / "f.svg", "A <title>", "What it shows & how."
    )
    return (folder / "f.pdf").read_bytes(), (folder / "f.svg").read_bytes()


@pytest.mark.parametrize("name", ["overview", "landscape"])
def test_the_same_data_give_the_same_bytes(name, tmp_path):
    shuffled = METRICS.sample(fraction=1, shuffle=True, seed=1)
    pdf, svg = draw(name, tmp_path)
    assert (pdf, svg) == draw(name, tmp_path, shuffled)
    assert b"CreationDate" not in pdf
    assert b"<dc:date>" not in svg
    assert b"/Type3" not in pdf


@pytest.mark.parametrize("name", ["overview", "landscape"])
def test_hostile_labels_are_drawn_as_they_are(name, tmp_path):
    models = {slug: f"$\\frac{{ {label} <script>&" for slug, label in MODELS.items()}
    entries = [entry._replace(label=f"{entry.label} $_^{{") for entry in ENTRIES]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, svg = draw(name, tmp_path, models=models, entries=entries)
    assert b"<script" not in svg


def luminance(color):
    """WCAG 2's relative luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_points_stand_out_from_paper_and_names_can_be_read():
    looks = [
        *figure_style.FAMILIES.values(),
        figure_style.TRACE,
        figure_style.TRACE_PLUS,
        figure_style.LOCAL_PEAK,
        figure_style.OTHER,
    ]
    assert min(1.05 / (luminance(look.color) + 0.05) for look in looks) >= 3
    assert min(1.05 / (luminance(look.text) + 0.05) for look in looks) >= 4.5


def test_shapes_alone_tell_estimators_apart():
    looks = [
        *figure_style.FAMILIES.values(),
        figure_style.TRACE,
        figure_style.TRACE_PLUS,
        figure_style.OTHER,
    ]
    assert len({look.marker for look in [*looks, figure_style.BEST_BASELINE]}) == len(looks) + 1
    assert (
        len(
            {
                look.line
                for look in (figure_style.TRACE, figure_style.TRACE_PLUS, figure_style.LOCAL_PEAK)
            }
        )
        == 3
    )


@pytest.mark.parametrize("name", ["overview", "landscape"])
def test_an_svg_holds_text_and_both_formats_say_what_they_show(name, tmp_path):
    pdf, svg = draw(name, tmp_path)
    drawn = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert [drawn[place].tag for place in (0, 1)] == [space + "title", space + "desc"]
    assert [drawn[place].text for place in (0, 1)] == ["A <title>", "What it shows & how."]
    written = {element.text for element in drawn.iter(space + "text")}
    assert {"TRACE", "TRACE+", "Beam"} <= {text.strip() for text in written}
    assert b"/Title (A <title>)" in pdf
    assert b"/Subject (What it shows & how.)" in pdf


def test_every_family_keeps_its_colour():
    looks = {
        entry.family: figure_style.style_of(entry) for entry in ENTRIES if entry.role == "baseline"
    }
    assert len({look.color for look in looks.values()}) == len(looks)
    assert len({look.marker for look in looks.values()}) == len(looks)
    assert (
        figure_style.style_of(Entry("x", "X", "unheard of", "baseline", "")) == figure_style.OTHER
    )


def test_fonts_stay_legible_and_widths_fit():
    for figure in (
        overview(METRICS, ENTRIES, MODELS, BOTH),
        landscape(METRICS, ENTRIES, MODELS, CROSS),
    ):
        assert figure.get_figwidth() == figure_style.TEXT_WIDTH
        found = figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
        assert min(text.get_fontsize() for text in found if text.get_text()) >= 6.5


@pytest.mark.parametrize(
    ("table", "study"),
    [
        ("main_comparison", {"main": MAIN}),
        ("cross_model", {"cross": CROSS}),
        ("cross_model_task_details", {"cross": CROSS}),
    ],
)
@pytest.mark.parametrize("plain", [False, True])
def test_the_script_makes_a_table_by_its_name(table, study, plain, tmp_path):
    frames = synthetic.frames(METRICS, ENTRIES, **study) | {"accuracy": synthetic.accuracy()}
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    kinds, make = ("tex", "csv", "html"), synthetic.make_of(table)
    run_script(
        "write_table.py",
        tmp_path,
        input={name: tmp_path / f"{name}.parquet" for name in frames},
        output={kind: tmp_path / f"out.{kind}" for kind in kinds},
        params={
            "module": make.__module__,
            "function": make.__name__,
            "estimators": [entry._asdict() for entry in ENTRIES],
            "words": {"title": "Title", "caption": "Caption."},
            "settings": {"models": MODELS, "tasks": TASKS, "studies": study, "options": OPTIONS},
            "as_printed": plain,
        },
        modules=(make.__module__,),
        table=table,
    )
    wanted = make(replace(synthetic.settings(ENTRIES, MODELS, TASKS, **study), frames=frames))
    wanted = as_in_paper(wanted) if plain else wanted
    assert (tmp_path / "out.csv").read_text() == render_csv(wanted)
    assert all((tmp_path / f"out.{kind}").stat().st_size > 500 for kind in kinds)


@pytest.mark.parametrize(
    ("figure", "study"), [("performance_overview", BOTH), ("model_landscape", CROSS)]
)
def test_the_script_draws_a_figure_by_its_name(figure, study, tmp_path):
    frames = {"means": averaged(METRICS, study)}
    frames |= {"comparisons": NO_COMPARISON} if study is BOTH else {}
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    estimators = [entry._asdict() for entry in ENTRIES]
    run_script(
        "draw_figure.py",
        tmp_path,
        input={name: str(tmp_path / f"{name}.parquet") for name in frames},
        output={kind: tmp_path / f"out.{kind}" for kind in ("pdf", "svg")},
        params={
            "settings": {"entries": estimators, "models": MODELS, "tasks": TASKS, "study": study},
            "words": {"title": "Title", "caption": "Caption."},
        },
        modules=(f"trace_workflow.figures.{figure}",),
        figure=figure,
    )
    assert all((tmp_path / f"out.{kind}").stat().st_size > 500 for kind in ("pdf", "svg"))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_is_legible_on_its_ground_in_the_light_and_in_the_dark():
    # Bands and rules may be faint, and what is filled with the ground's colour shall not be seen.
    grounds = {figure_style.FAINT, "#ffffff"}
    for light, dark in figure_style.DARK.items():
        if light not in grounds:
            assert contrast(light, "#ffffff") >= 3, light
            assert contrast(dark, "#0d1117") >= 4.5, light


def test_an_svg_has_no_ground_and_its_own_colours_in_the_dark(tmp_path):
    figure = overview(METRICS, ENTRIES, MODELS, BOTH)
    figure_style.save(figure, tmp_path / "f.pdf", tmp_path / "f.svg", "Title", "Description.")
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(svg)
    ground = svg.split('id="patch_1"')[1].split("</g>")[0]
    assert "fill: none" in ground or "opacity: 0" in ground
    rule = f'[style*="fill: {figure_style.INK}"]{{fill:{figure_style.DARK[figure_style.INK]}!'
    assert "@media (prefers-color-scheme: dark)" in svg and rule in svg
    assert f"fill: {figure_style.INK}" in svg.split("</style>")[-1], "what the rule finds"


def test_no_text_is_smaller_than_eight_points():
    for figure in (
        overview(METRICS, ENTRIES, MODELS, BOTH),
        landscape(METRICS, ENTRIES, MODELS, CROSS),
    ):
        texts = [one for one in figure.findobj(Text) if one.get_text()]
        assert min(one.get_fontsize() for one in texts) >= 8
