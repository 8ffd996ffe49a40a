"""The answer that a figure shows as an example."""

import polars as pl
import pytest

from trace_workflow.figures.framework_example import confident_error

ANSWERS = pl.DataFrame(
    [
        ("t", "a", False, 0.9, 2.0, 1.0, True, True, 0.1),
        ("t", "b", False, 0.5, 3.0, 0.5, True, True, 0.1),
        ("u", "not legible", False, 0.9, 9.0, 0.1, False, True, 0.1),
        ("t", "right", True, 0.9, 9.0, 0.1, True, True, 0.1),
        ("t", "unsure", False, 0.49, 9.0, 0.1, True, True, 0.1),
        ("s", "f", False, 0.7, 3.0, 0.5, True, True, 0.1),
    ],
    schema=[
        *("task", "example_id", "correct", "mean_prob"),
        *("window_entropy", "mean_entropy", "legible", "short", "probability"),
    ],
    orient="row",
)


def chosen(answers: pl.DataFrame) -> object:
    return confident_error(answers)["example_id"]


def test_it_is_wrong_and_sure_of_itself_and_has_the_highest_peak():
    assert chosen(ANSWERS) == "f"
    assert chosen(ANSWERS.filter(pl.col("example_id") != "f")) == "b"
    assert chosen(ANSWERS.filter(~pl.col("example_id").is_in(["b", "f"]))) == "a"


def test_an_answer_that_the_figure_would_cut_is_taken_only_where_no_other_is_confident_and_wrong():
    long = ANSWERS.with_columns(short=pl.col("example_id") == "a")
    assert chosen(long) == "a"
    assert chosen(ANSWERS.with_columns(short=pl.lit(False))) == "f"
    # A wrong answer that is sure of itself comes before one that is short.
    assert chosen(ANSWERS.with_columns(short=pl.col("example_id") == "right")) == "f"


def test_an_answer_that_trace_plus_trusts_is_taken_only_where_it_doubts_no_other():
    trusted = ANSWERS.with_columns(probability=pl.when(example_id="a").then(0.2).otherwise(0.44))
    assert chosen(trusted) == "a"
    assert chosen(ANSWERS.with_columns(probability=pl.lit(None, pl.Float64))) == "f"


def test_row_order_changes_nothing():
    shuffled = (ANSWERS.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5))
    assert {chosen(answers) for answers in shuffled} == {"f"}


@pytest.mark.parametrize(
    ("left", "expected"),
    [(["not legible"], "not legible"), (["right", "unsure"], "unsure"), (["right"], "right")],
)
def test_an_answer_is_found_where_there_is_none_of_the_kind(left, expected):
    assert chosen(ANSWERS.filter(pl.col("example_id").is_in(left))) == expected
