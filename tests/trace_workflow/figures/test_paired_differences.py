"""The paired differences: each comparison with its interval and n."""

import polars as pl
import pytest

from support.synthetic import ENTRIES, MODELS, TASKS
from trace_workflow.figures import figure_style
from trace_workflow.figures.paired_differences import draw, message

COUNTS = {"svamp": 60, "trivia": 1234}
ACCURACY = pl.DataFrame(
    [(model, task, n) for model in MODELS for task, n in COUNTS.items()],
    schema=["model", "task", "n"],
    orient="row",
)
COLUMNS = ["study", "model", "task", "metric", "against", "baseline", "difference", "low", "high"]


def improvements(against="named"):
    scopes = [
        (None, "tiny_a", "svamp"),
        (None, "tiny_a", "trivia"),
        ("main", "tiny_a", None),
        (None, "tiny_b", "svamp"),
        ("cross", None, None),
    ]
    rows = [
        (
            *scope,
            metric,
            against,
            "seq_logp",
            0.01 * place,
            0.01 * place - 0.015,
            0.01 * place + 0.02,
        )
        for place, scope in enumerate(scopes)
        for metric in ("brier", "auroc", "nll")
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row").with_columns(
        level=0.95, estimator=pl.lit("trace_plus")
    )


def figure(frame=None):
    frame = improvements() if frame is None else frame
    return draw(frame, ACCURACY, ENTRIES, MODELS, TASKS)


def test_each_pair_has_a_row_with_its_interval_and_n_and_means_have_none():
    prespecified, selected = figure().axes
    names = [label.get_text() for label in prespecified.get_yticklabels()]
    first, second = (model for model in MODELS if model in ("tiny_a", "tiny_b"))
    counts = {"svamp": "SVAMP{}, n = 60", "trivia": "TriviaQA{}, n = 1,234"}
    tasks = {"tiny_a": ["svamp", "trivia"], "tiny_b": ["svamp"]}
    assert names == [
        *(counts[task].format("") for task in tasks[first]),
        *(counts[task].format(f", {MODELS[second]}") for task in tasks[second]),
    ]
    assert not selected.collections
    drawn = {round(x.get_ydata()[0]): x for x in prespecified.lines if x.get_marker() == "o"}
    assert len(drawn) == len(prespecified.collections) == 3
    middles = sorted(line.get_xdata()[0] for line in drawn.values())
    assert middles == pytest.approx([0, 0.01, 0.03])
    spans = sorted(part.get_segments()[0][:, 0].tolist() for part in prespecified.collections)
    assert spans == [
        pytest.approx([0.01 * place - 0.015, 0.01 * place + 0.02]) for place in (0, 1, 3)
    ]
    # Filled where the interval leaves zero out.
    filled = [x.get_xdata()[0] for x in drawn.values() if x.get_markerfacecolor() != "white"]
    assert filled == pytest.approx([0.03])


def test_both_baselines_that_could_be_chosen_have_a_panel_and_the_oracle_does_not():
    other = improvements("picked").with_columns(pl.col("difference", "low", "high") - 0.1)
    oracle = improvements("oracle").with_columns(difference=9.0)
    drawn = figure(pl.concat([improvements(), other, oracle]))
    points = [[x for x in axes.lines if x.get_marker() == "o"] for axes in drawn.axes]
    assert [len(lines) for lines in points] == [3, 3]
    assert max(line.get_xdata()[0] for lines in points for line in lines) < 1
    colors = {line.get_markerfacecolor() for line in points[1]}
    assert colors == {figure_style.INK}, "a loss is not drawn in the colour of a win"
    assert drawn.legends[0].get_title().get_text().startswith("prespecified: SeqLogP / Total NLL;")
    (text,) = figure(oracle).texts
    assert "prespecified" in text.get_text()


def test_the_title_counts_wins_ties_and_losses():
    worse = improvements("picked").with_columns(low=pl.lit(-0.2), high=pl.lit(-0.1))
    pairs = pl.concat([improvements(), worse]).filter(pl.col("study").is_null(), metric="auroc")
    assert message(pairs) == (
        "TRACE+ task by task: 1 win and 2 ties against the prespecified baseline; 3 losses against the "
        "selected baseline"
    )
    assert message(pairs.clear()) == ""


def test_what_is_undefined_is_left_out(tmp_path):
    undefined = improvements().with_columns(
        low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64)
    )
    assert all(not axes.collections for axes in figure(undefined).axes[:2])
    none = undefined.with_columns(difference=pl.lit(None, pl.Float64))
    made = figure(none)
    figure_style.save(made, tmp_path / "f.pdf", tmp_path / "f.svg", "Title", "Description.")


def test_the_same_comparisons_give_the_same_bytes(tmp_path):
    for name, frame in (("a", improvements()), ("b", improvements().reverse())):
        made = figure(frame)
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(made, *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
