"""Which answers are shown of too many."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.explorer.explorer_contents import choose_answers

SIZES = {("a", "long"): 50, ("a", "short"): 4, ("b", "long"): 50}
ROWS = [(m, t, f"{t}-{at}") for (m, t), n in SIZES.items() for at in range(n)]
FRAME = pl.DataFrame(ROWS, schema=["model", "task", "example_id"], orient="row")


def shown(limit, frame=FRAME, seed=1):
    return choose_answers(frame, limit, seed).rows()


def test_all_are_shown_where_there_is_room():
    assert shown(104) == shown(1000) == sorted(ROWS)


def test_pairs_share_the_page_equally_and_small_ones_give_all():
    counts = choose_answers(FRAME, 44, 1).group_by("model", "task").len().rows()
    assert {(m, t): n for m, t, n in counts} == {
        ("a", "long"): 20,
        ("a", "short"): 4,
        ("b", "long"): 20,
    }


def test_models_are_shown_on_the_same_questions():
    rows = shown(44)
    of = {model: {row[2] for row in rows if row[:2] == (model, "long")} for model in "ab"}
    assert of["a"] == of["b"]


@given(st.randoms(), st.integers(1, 120))
def test_the_order_of_rows_means_nothing(random, limit):
    order = random.sample(range(FRAME.height), FRAME.height)
    assert shown(limit, FRAME[order]) == shown(limit)


@given(st.integers(1, 103))
def test_a_smaller_page_is_part_of_a_larger_one(limit):
    smaller = set(shown(limit))
    assert len(smaller) == limit
    assert smaller < set(shown(limit + 1))


def test_another_seed_draws_others():
    assert shown(44, seed=2) != shown(44)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_page_smaller_than_the_number_of_pairs_is_filled(limit):
    assert len(shown(limit)) == limit


PLACES = {"parent_task": pl.String, "parent_id": pl.String}
WHOLE = FRAME.with_columns(**{name: pl.lit(None, dtype) for name, dtype in PLACES.items()})
OF_LONG = WHOLE.filter(model="a", task="long").with_columns(
    task=pl.lit("facts"), parent_task=pl.lit("long"), parent_id="example_id"
)
WITH_PARTS = pl.concat(
    [WHOLE]
    + [OF_LONG.with_columns(example_id=pl.format("{}/{}", "example_id", pl.lit(x))) for x in "xyz"]
)


@given(st.integers(1, WITH_PARTS.height))
def test_parts_are_shown_together_and_with_their_answers(limit):
    chosen = choose_answers(WITH_PARTS, limit, 1)
    assert limit - 3 < chosen.height <= limit
    parents = chosen.filter(task="facts")["parent_id"].to_list()
    assert sorted(parents) == sorted([*set(parents)] * 3)
    own = chosen.filter(model="a", task="long")["example_id"]
    # In each round the parts come before their answer, as their task's name does.
    assert len(set(parents) - set(own)) <= 1
