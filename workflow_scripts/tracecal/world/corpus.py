"""The embedded world: four task families from one seed, and the corpus that tells of them."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from tracecal.world.arithmetic import make_arithmetic
from tracecal.world.closed_book import make_closed_book
from tracecal.world.extractive import make_extractive
from tracecal.world.family import Sizes, example_frame
from tracecal.world.misconceptions import make_misconceptions
from tracecal.world.replies import discussion_frame
from tracecal.world.self_evaluation import taught_judgements

FAMILIES = {
    "arithmetic": make_arithmetic,
    "closed_book": make_closed_book,
    "extractive": make_extractive,
    "misconceptions": make_misconceptions,
}
# What part of the corpus is of each family
SHARES = {"arithmetic": 0.21, "closed_book": 0.18, "extractive": 0.35, "misconceptions": 0.16}
# And what part tells of proposed answers, a quarter of it from each family
SELF_EVALUATION_SHARE = 0.10
# How many questions are discussed for each example of the corpus, a quarter of them of each family
DISCUSSED_SHARE = 0.12
CORPUS_SCHEMA = {
    "family": pl.String,
    "prompt": pl.String,
    "answer": pl.String,
    "before": pl.List(pl.String),
}


@dataclass(frozen=True)
class World:
    """`corpus`: family, prompt, answer, and the turns before. `examples`: each family's rows.
    `discussions`: replies to questions, phrase by phrase, for encoders."""

    corpus: pl.DataFrame
    examples: dict[str, pl.DataFrame]
    discussions: pl.DataFrame


def make_world(
    seed: int, size: int, evaluation: int, training: int, self_evaluation: Mapping[str, str]
) -> World:
    """The world of `seed`: about `size` corpus examples, so many question rows per family.

    Each family draws from its own generator, so a change to one leaves the others as they were.
    `self_evaluation` holds the texts that ask a model about its own answers.
    """
    proposals = round(SELF_EVALUATION_SHARE * size / len(FAMILIES))
    discussed = round(DISCUSSED_SHARE * size / len(FAMILIES))
    families = {
        name: make(
            seed, Sizes(round(SHARES[name] * size), evaluation, training, proposals, discussed)
        )
        for name, make in FAMILIES.items()
    }
    told = [(name, *one) for name, family in families.items() for one in family.corpus]
    told += [
        ("self_evaluation", *one)
        for family in families.values()
        for one in taught_judgements(family.proposals, self_evaluation)
    ]
    random.Random(f"{seed} order").shuffle(told)
    corpus = pl.DataFrame(told, schema=CORPUS_SCHEMA, orient="row")
    examples = {name: example_frame(name, family.questions) for name, family in families.items()}
    discussions = [(name, one) for name, family in families.items() for one in family.discussions]
    random.Random(f"{seed} discussions").shuffle(discussions)
    return World(corpus, examples, discussion_frame(discussions))
