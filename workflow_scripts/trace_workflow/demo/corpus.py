"""The demo data, made from public facts: task families, and the corpus that states them."""

import random
from dataclasses import dataclass

import polars as pl

from trace_workflow.demo.arithmetic import make_arithmetic
from trace_workflow.demo.closed_book import make_closed_book, make_records
from trace_workflow.demo.extractive import make_extractive
from trace_workflow.demo.family import Sizes, discussion_frame, example_frame
from trace_workflow.demo.misconceptions import make_misconceptions

FAMILIES = {
    "arithmetic": make_arithmetic,
    "closed_book": make_closed_book,
    "extractive": make_extractive,
    "misconceptions": make_misconceptions,
    "records": make_records,
}
# Share of the corpus for each family that it states, chosen so that a tiny model knows about half
# of each
SHARES = {"arithmetic": 0.46, "closed_book": 0.09, "extractive": 0.11, "misconceptions": 0.34}
# Discussed questions per example of the corpus; each of these families has a quarter
DISCUSSED_SHARE = 0.12
CORPUS_SCHEMA = {"family": pl.String, "prompt": pl.String, "answer": pl.String}


@dataclass(frozen=True)
class World:
    """`corpus`: family, prompt and answer. `examples`: each family's rows.
    `discussions`: replies to questions, phrase by phrase, to train encoders on."""

    corpus: pl.DataFrame
    examples: dict[str, pl.DataFrame]
    discussions: pl.DataFrame


def make_world(seed: int, size: int, evaluation: int, training: int) -> World:
    """The demo data of `seed`: `size` corpus examples, and each family's number of rows by role.

    Each family draws from its own generator, so a change to one leaves the others as they were.
    """
    discussed = round(DISCUSSED_SHARE * size / len(SHARES))
    families = {
        name: make(seed, Sizes(round(SHARES.get(name, 0) * size), evaluation, training, discussed))
        for name, make in FAMILIES.items()
    }
    exchanges = [
        (name, *exchange) for name, family in families.items() for exchange in family.corpus
    ]
    random.Random(f"{seed} order").shuffle(exchanges)
    corpus = pl.DataFrame(exchanges, schema=CORPUS_SCHEMA, orient="row")
    examples = {name: example_frame(name, family.questions) for name, family in families.items()}
    discussions = [(name, talk) for name, family in families.items() for talk in family.discussions]
    random.Random(f"{seed} discussions").shuffle(discussions)
    return World(corpus, examples, discussion_frame(discussions))
