"""The paired differences: each comparison with its interval and n."""

import polars as pl
import pytest

from support.synthetic import ENTRIES, MODELS, TASKS
from trace_workflow.figures.paired_differences import draw, message
from tracecal.pages import figure_style

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
    return pl.DataFrame(rows, schema=COLUMNS, orient="row").with_columns(level=0.95)


def figure(frame=None):
    frame = improvements() if frame is None else frame
    return draw(frame, ACCURACY, ENTRIES, MODELS, TASKS)


def test_every_comparison_has_its_interval_and_n():
    brier, auroc = figure().axes
    names = [label.get_text() for label in brier.get_yticklabels()]
    b, a = MODELS["tiny_b"], MODELS["tiny_a"]
    own = [a, "SVAMP, n = 60", "TriviaQA, n = 1,234", "mean"], [b, "SVAMP, n = 60"]
    blocks = own if list(MODELS).index("tiny_a") < list(MODELS).index("tiny_b") else own[::-1]
    assert names == [*blocks[0], *blocks[1], "mean over models"]
    for axes in (brier, auroc):
        drawn = {
            round(line.get_ydata()[0]): line for line in axes.lines if line.get_marker() == "o"
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


def test_both_baselines_that_could_be_chosen_stand_in_a_row_and_the_oracle_does_not():
    other = improvements("picked").with_columns(pl.col("difference", "low", "high") + 0.1)
    oracle = improvements("oracle").with_columns(difference=9.0)
    drawn = figure(pl.concat([improvements(), other, oracle]))
    markers = [line.get_marker() for line in drawn.axes[0].lines]
    assert markers.count("o") == markers.count("s") == 5
    assert max(line.get_xdata()[0] for line in drawn.axes[0].lines) < 1
    names = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert names[:2] == [" less SeqLogP / Total NLL, prespecified", " less the selected baseline"]
    (text,) = figure(oracle).texts
    assert "prespecified" in text.get_text()


def test_the_title_says_on_how_many_pairs_the_interval_leaves_zero_out():
    worse = improvements("picked").with_columns(low=pl.lit(-0.2), high=pl.lit(-0.1))
    assert message(pl.concat([improvements(), worse])) == (
        "TRACE+ ranks better than the prespecified baseline on 1 of 3 pairs, worse on 0; than "
        "the selected baseline on 0 of 3 pairs, worse on 3"
    )
    assert message(improvements().clear()) == ""


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
