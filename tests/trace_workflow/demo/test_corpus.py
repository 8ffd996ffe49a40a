"""The world as a whole: shapes, ids, roles, seeds."""

import re
from typing import get_args

import polars as pl
import pytest

from trace_workflow.config.models import ASKED_ALONE, Family
from trace_workflow.demo.corpus import FAMILIES, SHARES, make_world
from trace_workflow.demo.family import EXAMPLE_SCHEMA, Sizes, example_frame
from tracecal.errors import InputError

TINY = {"size": 2000, "evaluation": 60, "training": 20}


def test_a_configuration_can_name_every_family_that_the_corpus_states():
    assert get_args(Family) == tuple(SHARES)
    assert {*FAMILIES} - {*SHARES} == {ASKED_ALONE}


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_as_many_as_asked_for_in_either_role(world, family):
    examples = world.examples[family]
    facts = examples.columns[len(EXAMPLE_SCHEMA) :]
    assert examples.schema == EXAMPLE_SCHEMA | dict.fromkeys(facts, pl.List(pl.String))
    assert bool(facts) == (family == ASKED_ALONE)
    counts = dict(examples["role"].value_counts().iter_rows())
    assert counts == {"evaluation": 60, "training": 20}


@pytest.mark.parametrize("family", FAMILIES)
def test_groups_are_not_divided_between_roles_and_ids_are_unique(world, family):
    examples = world.examples[family]
    assert examples["example_id"].is_unique().all()
    roles = examples.group_by("group_id").agg(pl.col("role").n_unique())
    assert roles["role"].to_list() == [1] * roles.height


def test_ids_are_of_what_is_asked_and_survive_another_order():
    questions = FAMILIES["extractive"](1, Sizes(10, 8, 4)).questions
    ids = example_frame("extractive", questions)["example_id"].to_list()
    assert example_frame("extractive", questions[::-1])["example_id"].to_list() == ids[::-1]
    assert all(re.fullmatch("extractive-[0-9a-f]{12}", name) for name in ids)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_larger_corpus_asks_the_same_questions(world, family):
    larger = FAMILIES[family](1, Sizes(1000, 60, 20))
    assert example_frame(family, larger.questions).equals(world.examples[family])


def test_the_corpus_has_about_the_size_and_the_shares(world):
    counts = dict(world.corpus["family"].value_counts().iter_rows())
    assert counts == {family: round(share * TINY["size"]) for family, share in SHARES.items()}
    assert sum(SHARES.values()) == pytest.approx(1)
    assert world.corpus.columns == ["family", "prompt", "answer"]
    assert world.corpus.select(pl.all().str.len_chars().min()).row(0) > (0, 0, 0)


def test_one_seed_makes_one_world_and_another_seed_another(world):
    again, other = make_world(seed=1, **TINY), make_world(seed=2, **TINY)
    assert again.corpus.equals(world.corpus)
    assert not other.corpus.equals(world.corpus)
    for family, examples in world.examples.items():
        assert again.examples[family].equals(examples)
        assert not other.examples[family].equals(examples)


def test_a_world_that_cannot_be_made_says_so():
    with pytest.raises(InputError, match=r"needs \d+ .* exist"):
        make_world(seed=1, size=100, evaluation=60, training=20)
