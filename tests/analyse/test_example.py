"""The answer that a figure shows as an example."""

import polars as pl

from tracecal.analyse.example import typical_peak

ANSWERS = pl.DataFrame(
    [
        ("t", "a", 5.0, 2.0, 1.0, True),
        ("t", "b", 5.0, 3.0, 0.5, True),
        ("u", "c", 5.0, 9.0, 0.1, False),
        ("t", "d", 2.0, 9.0, 0.1, True),
        ("t", "e", 9.0, 9.0, 0.1, True),
        ("s", "f", 5.0, 3.0, 0.5, True),
    ],
    schema=["task", "example_id", "length", "window_entropy", "mean_entropy", "legible"],
    orient="row",
)


def test_it_has_the_largest_gap_at_median_length_and_can_be_read():
    assert typical_peak(ANSWERS)["example_id"] == "f"
    assert typical_peak(ANSWERS.filter(pl.col("example_id") != "f"))["example_id"] == "b"


def test_row_order_changes_nothing():
    shuffled = (ANSWERS.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5))
    assert {typical_peak(answers)["example_id"] for answers in shuffled} == {"f"}


def test_an_answer_is_found_where_none_can_be_read_and_where_there_is_but_one():
    assert typical_peak(ANSWERS.filter(~pl.col("legible")))["example_id"] == "c"
    assert typical_peak(ANSWERS.with_columns(legible=pl.lit(False)))["example_id"] == "c"
    assert typical_peak(ANSWERS.head(2).tail(1))["example_id"] == "b"
