"""The figure of local risk: rows of both panels belong together, and nothing is cut."""

import polars as pl
import pytest

from trace_workflow.figures import figure_style
from trace_workflow.figures.local_risk_aggregation import draw as local_risk_aggregation
from tracecal.estimators.features import WINDOW

SELECTED = pl.DataFrame(
    {
        "task": ["t", "t", "s"],
        "example_id": ["a", "b", "c"],
        "mean_risk": [0.5, 0.25, 0.75],
        "local_peak": [2.0, 1.0, 3.0],
        "peak_start": [7, 0, 3],
        "entropy": [[0.1 * i for i in range(11)], [1.0] * 4 + [0.0] * 8, [0.75] * 9],
        "correct": False,
        "answers": 57,
        "eligible": 12,
    }
)


def test_rows_are_the_answers_by_the_place_of_their_peak():
    figure = local_risk_aggregation(SELECTED)
    assert "2.0 nats in the framed window, 0.5 over all tokens" in figure.get_suptitle().replace(
        "\n", " "
    )
    tokens, scores, *_ = figure.axes
    grid = tokens.collections[0].get_array()
    assert grid.shape == (3, 12)
    assert grid[0, :4].tolist() == [1.0] * 4
    assert grid[2, 10] == pytest.approx(1.0)
    assert grid.mask[1, 9:].all(), "past the end there is no risk"
    boxes = [patch.get_bbox().bounds for patch in tokens.patches]
    assert [box[:3] for box in boxes] == [
        (s + 0.5, r - 0.5, WINDOW) for r, s in enumerate((0, 3, 7))
    ]
    means, peaks = (list(line.get_xdata()) for line in scores.lines)
    assert means == [0.25, 0.75, 0.5]
    assert peaks == [1.0, 3.0, 2.0]
    assert tokens.get_ylabel() == ""
    assert [label.get_text() for label in tokens.get_yticklabels()] == [
        "3 of 12 eligible\nwrong answers"
    ]
    assert tokens.get_ylim() == scores.get_ylim()


def test_correct_answers_stand_below_in_grey_on_the_same_scale():
    correct = SELECTED.with_columns(correct=True, eligible=40)
    tokens, scores, *_ = local_risk_aggregation(pl.concat([correct, SELECTED])).axes
    wrong, right = tokens.collections[:2]
    assert (wrong.get_cmap().name, right.get_cmap().name) == ("YlOrRd", "Greys")
    assert wrong.get_clim() == right.get_clim()
    labels = [label.get_text() for label in tokens.get_yticklabels()]
    assert labels == ["3 of 12 eligible\nwrong answers", "3 of 40 eligible\ncorrect answers"]
    rows = [list(line.get_ydata()) for line in scores.lines]
    assert rows == [[0, 1, 2]] * 2 + [[3, 4, 5]] * 2
    assert {line.get_color() for line in scores.lines[2:]} == {figure_style.MUTED}


def test_it_fits_its_column_and_nothing_is_cut():
    figure = local_risk_aggregation(SELECTED)
    assert figure.get_figwidth() == figure_style.TEXT_WIDTH
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= figure_style.TEXT_WIDTH
    assert box.y1 <= figure.get_figheight()


def test_without_an_answer_it_says_so(tmp_path):
    figure = local_risk_aggregation(SELECTED.clear())
    figure_style.save(figure, tmp_path / "f.pdf", tmp_path / "f.svg", "Title", "Description.")
    assert [text.get_text() for text in figure.texts] != []


def test_the_same_answers_give_the_same_bytes(tmp_path):
    for name, frame in (("a", SELECTED), ("b", SELECTED.reverse())):
        figure = local_risk_aggregation(frame)
        paths = tmp_path / f"{name}.pdf", tmp_path / f"{name}.svg"
        figure_style.save(figure, *paths, "Title", "Description.")
    for kind in ("pdf", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
