"""The paired differences: each comparison with its interval and n, and position beside them."""

import polars as pl
import pytest

from support.synthetic import ENTRIES, MODELS, TASKS
from trace_workflow.figures.paired_differences import compared_rows, draw
from tracecal.apps import figure_style

COUNTS = {"svamp": 60, "trivia": 1234}
ACCURACY = pl.DataFrame(
    [(model, task, n) for model in MODELS for task, n in COUNTS.items()],
    schema=["model", "task", "n"],
    orient="row",
)
COLUMNS = ["study", "model", "task", "metric", "against", "baseline", "difference", "low", "high"]
POSITION = pl.DataFrame(
    [
        (task, quantity, mean, sd, over)
        for task, original, shifted in (("svamp", 0.6, 0.55), (None, 0.62, 0.7))
        for quantity, mean, sd, over in (
            ("original", original, 0.01, "split"),
            ("shifted", shifted, 0.01, "split"),
            ("shifted", shifted, 0.02, "draw"),
        )
    ],
    schema=["task", "quantity", "mean", "sd", "over"],
    orient="row",
)


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
    return pl.DataFrame(rows, schema=COLUMNS, orient="row").with_columns(level=0.95)


def figure(frame=None, position=POSITION):
    frame = improvements() if frame is None else frame
    return draw(frame, ACCURACY, position, ENTRIES, MODELS, TASKS)


def test_every_comparison_has_its_interval_and_n():
    brier, auroc, _ = figure().axes
    names = [label.get_text() for label in brier.get_yticklabels()]
    b, a = MODELS["tiny_b"], MODELS["tiny_a"]
    own = [a, "SVAMP, n = 60", "TriviaQA, n = 1,234", "mean"], [b, "SVAMP, n = 60"]
    blocks = own if list(MODELS).index("tiny_a") < list(MODELS).index("tiny_b") else own[::-1]
    assert names == [*blocks[0], *blocks[1], "mean over models"]
    for axes in (brier, auroc):
        drawn = {
            round(line.get_ydata()[0]): line
            for line in axes.lines
            if line.get_marker() in ("o", "D")
        }
        assert len(drawn) == len(axes.collections) == 5
        middles = sorted(line.get_xdata()[0] for line in drawn.values())
        assert middles == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
        spans = [part.get_segments()[0][:, 0].tolist() for part in axes.collections]
        assert sorted(spans) == [
            pytest.approx([0.01 * place - 0.015, 0.01 * place + 0.02]) for place in range(5)
        ]
        # Filled where the interval leaves zero out.
        filled = [x.get_xdata()[0] for x in drawn.values() if x.get_markerfacecolor() != "white"]
        assert sorted(filled) == pytest.approx([0.02, 0.03, 0.04])


def test_only_the_baseline_named_beforehand_is_compared_with():
    both = pl.concat([improvements(), improvements("oracle").with_columns(difference=9.0)])
    rows = list(compared_rows(both.filter(against="named"), ACCURACY, MODELS, TASKS))
    assert len(rows) == 7
    title = figure(both).legends[0].get_title().get_text()
    assert "SeqLogP" in title and "named beforehand" in title
    assert max(line.get_xdata()[0] for line in figure(both).axes[0].lines) < 1
    (text,) = figure(improvements("oracle")).texts
    assert "named beforehand" in text.get_text()


def test_shuffled_tokens_stand_beside_those_in_order():
    shifted = figure().axes[2]
    assert [text.get_text() for text in shifted.texts] == ["SVAMP", "Average"]
    x = [line.get_xdata()[0] for line in shifted.lines]
    assert x == [0.55, 0.6, 0.7, 0.62]
    assert [line.get_color() for line in shifted.lines[1::2]] == [figure_style.TRACE.color] * 2
    ends = [part.get_segments()[0][:, 0].tolist() for part in shifted.collections]
    assert ends == [pytest.approx([0.51, 0.59]), pytest.approx([0.66, 0.74])]


def test_what_is_undefined_is_left_out(tmp_path):
    undefined = improvements().with_columns(
        low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64)
    )
    assert all(not axes.collections for axes in figure(undefined).axes[:2])
    none = undefined.with_columns(difference=pl.lit(None, pl.Float64))
    made = figure(none, POSITION.with_columns(mean=pl.lit(None, pl.Float64)))
    figure_style.save(made, tmp_path / "f.pdf", tmp_path / "f.svg", "Title", "Description.")


def test_the_same_comparisons_give_the_same_bytes(tmp_path):
    for name, frame, position in (
        ("a", improvements(), POSITION),
        ("b", improvements().reverse(), POSITION.reverse()),
    ):
        made = figure(frame, position)
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(made, *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
