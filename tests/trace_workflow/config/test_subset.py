"""The subset on which the estimators that cost most are computed."""

import polars as pl
import pytest

from trace_workflow.config.task_tables import draw_subset

ROWS = pl.DataFrame(
    {
        "example_id": [f"e{place:03}" for place in range(80)],
        "role": ["evaluation"] * 60 + ["training"] * 20,
        "question": [f"Question {place}?" for place in range(80)],
    }
)


def drawn(rows=ROWS, seed=1, count=20):
    return set(draw_subset(rows, seed, count).filter(role="evaluation")["example_id"])


def test_it_has_the_size_asked_for_and_leaves_everything_else_as_it_was():
    subset = draw_subset(ROWS, 1, 20)
    assert dict(subset["role"].value_counts().iter_rows()) == {
        "evaluation": 20,
        "outside": 40,
        "training": 20,
    }
    assert subset.drop("role").equals(ROWS.drop("role"))
    assert subset.filter(role="training").equals(ROWS.filter(role="training"))


@pytest.mark.parametrize("count", [60, 1000])
def test_a_task_with_fewer_rows_is_taken_whole(count):
    assert draw_subset(ROWS, 1, count).equals(ROWS)


def test_a_larger_subset_holds_every_smaller_one_and_order_plays_no_part():
    assert drawn(count=10) < drawn(count=30) < drawn(count=59)
    assert drawn(ROWS.sample(fraction=1, shuffle=True, seed=2)) == drawn()
    assert drawn(seed=2) != drawn()
    # Rows that are not drawn may go without moving those that are.
    fewer = ROWS.filter(
        (pl.col("role") == "training") | pl.col("example_id").is_in(drawn(count=30))
    )
    assert drawn(fewer) == drawn()
