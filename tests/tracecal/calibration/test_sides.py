"""The side of an answer: a fifth fits, decided by the answers themselves."""

import numpy as np
import polars as pl
from scipy.stats import binomtest, kstest

from tracecal.calibration.groups import group_answers
from tracecal.calibration.guarantees.sides import assign_sides


def make_answers(n, seed=0, group_size=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "example_id": [f"q{number}" for number in range(n)],
            "asked": pl.Series([None] * n, dtype=pl.String),
            "prompt": [f"Which is number {number // group_size}?" for number in range(n)],
            "answer": [f"This one: {number}" for number in range(n)],
            "surprisal": rng.exponential(size=(n, 4)).tolist(),
            "entropy": rng.exponential(size=(n, 4)).tolist(),
            "group_id": pl.Series([None] * n, dtype=pl.String),
            "correct": (rng.random(n) < 0.5).tolist(),
        }
    )


def sides_of(answers):
    return assign_sides(answers, group_answers(answers)).sort("example_id")


def test_a_fifth_of_the_groups_fits_whatever_their_size():
    for size in (1, 5):
        groups = sides_of(make_answers(4000, group_size=size)).unique("group_id")
        fits = (groups["side"] == "fit").sum()
        assert binomtest(fits, groups.height, 0.2).pvalue > 0.001
        assert kstest(groups["order"].to_numpy() / 2**64, "uniform").pvalue > 0.001


def test_a_group_is_on_one_side_and_in_one_place():
    sides = sides_of(make_answers(600, group_size=3))
    by_group = sides.group_by("group_id").agg(pl.col("side", "order").n_unique(), n=pl.len())
    assert by_group.select("side", "order", "n").unique().rows() == [(1, 1, 3)]


def test_rows_that_are_equal_in_question_and_trace_are_one_group():
    answers = make_answers(50)
    again = answers.with_columns(example_id="again-" + pl.col("example_id"))
    sides = sides_of(pl.concat([answers, again]))
    assert sides["group_id"].n_unique() == 50
    assert sides.group_by("group_id").agg(pl.col("side").n_unique())["side"].max() == 1


def test_neither_order_nor_labels_nor_further_answers_move_an_answer():
    answers = make_answers(300)
    sides = sides_of(answers)
    shuffled = answers.sample(fraction=1.0, shuffle=True, seed=1)
    assert sides_of(shuffled).equals(sides)
    assert sides_of(answers.with_columns(correct=~pl.col("correct"))).equals(sides)
    more = pl.concat([answers, make_answers(900, seed=5).tail(600)])
    assert sides_of(more).join(sides, on="example_id", how="semi").equals(sides)


def test_equal_answers_without_a_question_are_divided_by_their_ids():
    """A tie of saturated answers must not fall on one side as a whole."""
    answers = make_answers(1000).with_columns(
        prompt=pl.lit(None, dtype=pl.String), answer=pl.lit("yes"), surprisal=[0.0], entropy=[0.0]
    )
    sides = sides_of(answers)
    assert sides["group_id"].n_unique() == 1000
    assert 150 < (sides["side"] == "fit").sum() < 250


def test_answers_without_a_trace_have_a_side():
    answers = make_answers(20).with_columns(surprisal=None, entropy=None)
    assert sides_of(answers)["side"].null_count() == 0
    assert sides_of(answers.clear()).is_empty()
