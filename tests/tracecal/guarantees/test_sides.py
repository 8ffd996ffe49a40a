"""Which answers test: four fifths of the questions, one answer of each, by the answers' contents."""

import hashlib
import time

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from tracecal.answers.facts import without_blanks
from tracecal.answers.groups import group_answers, place_answers


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


def places_of(answers):
    groups = group_answers(answers)
    return place_answers(answers, groups).join(groups, on="example_id").sort("example_id")


def hash_by_hand(question, answer, surprisal):
    content = b""
    for text in (question, answer):
        content += len(text.encode()).to_bytes(8, "little") + text.encode()
    content += b"".join(np.float32(value).tobytes() for value in surprisal)
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def test_the_side_is_that_of_the_documented_hash():
    answers = make_answers(60)
    places = places_of(answers)
    rows = answers.sort("example_id").select("prompt", "answer", "surprisal").rows()
    hashes = [hash_by_hand(*row) for row in rows]
    assert places["side"].to_list() == [
        "fit" if value < 0.2 * 2**64 else "test" for value in hashes
    ]
    assert places["rank"].to_list() == np.argsort(np.argsort(hashes)).tolist()


def test_many_blanks_are_left_out_in_time_in_proportion():
    start = time.process_time()
    text = "a" + " " * 200_000 + "b"
    assert without_blanks(f" {text} \r\n{text}\t\nc ") == f"{text}\n{text}\nc"
    assert time.process_time() - start < 2


@pytest.mark.parametrize("ending", ["  ", "\n", " \r\n"])
def test_blanks_at_the_ends_and_other_names_move_no_answer(ending):
    answers = make_answers(60).with_columns(answer="one:\n" + pl.col("answer"))
    places = places_of(answers).drop("group_id")
    blanks = answers.with_columns(
        prompt=" " + pl.col("prompt") + ending,
        answer=pl.col("answer").str.replace("one:\n", "one: \t\n", literal=True) + ending,
    )
    assert places_of(blanks).drop("group_id").equals(places)
    renamed = answers.with_columns(example_id=pl.col("example_id").str.reverse())
    again = places_of(renamed).with_columns(pl.col("example_id").str.reverse())
    assert again.sort("example_id").drop("group_id").equals(places)


def test_a_fifth_of_the_groups_fits_whatever_their_size():
    for size in (1, 5):
        groups = places_of(make_answers(4000, group_size=size)).unique("group_id")
        fits = (groups["side"] == "fit").sum()
        assert binomtest(fits, groups.height, 0.2).pvalue > 0.001


def test_a_group_is_on_one_side_in_one_place_and_one_of_its_answers_represents_it():
    places = places_of(make_answers(600, group_size=3))
    by_group = places.group_by("group_id").agg(
        pl.col("side", "rank").n_unique(), pl.col("represents").sum(), n=pl.len()
    )
    assert by_group.drop("group_id").unique().rows() == [(1, 1, 1, 3)]
    first = places.with_columns(place=pl.int_range(pl.len()).over("group_id")).filter("represents")
    counts = first["place"].value_counts()["count"]
    assert counts.min() > 40  # of 200: each of three in its turn


def test_rows_that_are_equal_in_question_and_trace_are_one_group_in_the_place_of_one():
    answers = make_answers(50)
    again = answers.with_columns(example_id="again-" + pl.col("example_id"))
    places = places_of(pl.concat([answers, again]))
    assert places["group_id"].n_unique() == 50 == places["represents"].sum()
    assert (
        places.select("example_id", "rank", "side")
        .join(
            places_of(answers).select("example_id", "rank", "side"),
            on=["example_id", "rank", "side"],
        )
        .height
        == 50
    )


def test_neither_order_nor_labels_nor_further_answers_move_an_answer():
    answers = make_answers(300)
    places = places_of(answers)
    shuffled = answers.sample(fraction=1.0, shuffle=True, seed=1)
    assert places_of(shuffled).equals(places)
    assert places_of(answers.with_columns(correct=~pl.col("correct"))).equals(places)
    more = pl.concat([answers, make_answers(900, seed=5).tail(600)])
    again = places_of(more).join(places, on="example_id", how="semi")
    assert again.drop("rank").equals(places.drop("rank"))


def test_equal_answers_without_a_question_are_divided_by_their_ids():
    """A tie of saturated answers must not fall on one side as a whole."""
    answers = make_answers(1000).with_columns(
        prompt=pl.lit(None, dtype=pl.String), answer=pl.lit("yes"), surprisal=[0.0], entropy=[0.0]
    )
    places = places_of(answers)
    assert places["group_id"].n_unique() == 1000 == places["rank"].n_unique()
    assert 150 < (places["side"] == "fit").sum() < 250


def test_the_parts_of_one_answer_represent_their_question_together():
    answers = make_answers(600, group_size=6).with_columns(
        parent_id=pl.format("d{}", pl.int_range(pl.len()) // 3)
    )
    groups = answers.select("example_id", group_id=pl.format("g{}", pl.int_range(pl.len()) // 6))
    places = place_answers(answers, groups).join(answers, on="example_id")
    by_document = places.group_by("parent_id").agg(pl.col("represents").n_unique())
    assert by_document["represents"].max() == 1
    assert places.filter("represents").height == 300


def test_answers_without_a_trace_have_a_side():
    answers = make_answers(20).with_columns(
        surprisal=pl.lit(None, pl.List(pl.Float32)), entropy=pl.lit(None, pl.List(pl.Float32))
    )
    assert places_of(answers)["side"].null_count() == 0
    assert places_of(answers.clear()).is_empty()
