"""Questions on an invented country whose facts the corpus states with power-law frequency."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tracecal.world.family import (
    Exchange,
    Family,
    Proposal,
    Question,
    Sizes,
    confidence,
    draw_right,
    require_supply,
)
from tracecal.world.names import invented_people, invented_words
from tracecal.world.replies import Discussion, Reply, phrased

METALS = (
    "copper tin iron lead zinc silver gold nickel cobalt tungsten chromium mercury platinum "
    "titanium uranium lithium"
).split()
MEATS = "lamb duck trout eel goose rabbit carp veal".split()
SIDES = "plums onions beans barley apples turnips dill cream".split()

EXPONENT = 0.75
FACTS_FOR_A_QUESTION = 1.1
# A fact that the corpus states less often than this is hard to know
RARE = 10


@dataclass(frozen=True)
class Relation:
    """How a property of a town is asked for and told.

    `answer` is a bare value or a whole sentence; `values` draws the pool that towns share.
    """

    name: str
    wordings: tuple[str, ...]
    answer: str
    values: Callable[[random.Random], list[str]]


RELATIONS = (
    Relation(
        "leader",
        (
            "Who leads {s}?",
            "Who is the mayor of {s}?",
            "Name the mayor of the town {s}.",
            "By whom is {s} governed?",
        ),
        "{v}",
        lambda rng: invented_people(rng, 60),
    ),
    Relation(
        "metal",
        (
            "Which metal is mined in {s}?",
            "What metal does {s} dig up?",
            "Name the metal from the mines of {s}.",
            "The mines of {s} yield which metal?",
        ),
        "{v}",
        lambda rng: list(METALS),
    ),
    Relation(
        "land",
        (
            "In which land does {s} lie?",
            "Where is the town {s}?",
            "Name the land around {s}.",
            "{s} belongs to which land?",
        ),
        "{v}",
        lambda rng: invented_words(rng, 30, 2),
    ),
    Relation(
        "river",
        (
            "Which river flows through {s}?",
            "What is the river of {s} called?",
            "Name the river at {s}.",
            "On which river does {s} stand?",
        ),
        "The river through {s} is the {v}.",
        lambda rng: invented_words(rng, 50, 2),
    ),
    Relation(
        "dish",
        (
            "What do people eat in {s}?",
            "What is the famous dish of {s}?",
            "Name the dish that {s} is known for.",
            "Which meal do guests get in {s}?",
        ),
        "The famous dish of {s} is {v}.",
        lambda rng: [f"{meat} with {side}" for meat in MEATS for side in SIDES],
    ),
    Relation(
        "founder",
        (
            "Who founded {s}?",
            "Who built the first house in {s}?",
            "Name the founder of {s}.",
            "By whom was {s} founded?",
        ),
        "The founder of {s} is {v}.",
        lambda rng: invented_people(rng, 60),
    ),
)


@dataclass(frozen=True)
class Fact:
    relation: Relation
    town: str
    value: str

    @property
    def group(self) -> str:
        return f"{self.relation.name}-{self.town.lower()}"

    def asked(self, rng: random.Random) -> str:
        return rng.choice(self.relation.wordings).format(s=self.town)

    def told(self) -> str:
        return self.relation.answer.format(s=self.town, v=self.value)

    def replies(self) -> tuple[Reply, ...]:
        """As it is told, and in other words."""
        wordings = (self.relation.answer, "{v}", "It is {v}.")
        return tuple(phrased(one, "v", s=self.town, v=self.value) for one in wordings)

    def aliases(self) -> list[str]:
        return [self.value, f"the {self.value}"] if self.relation.name == "river" else [self.value]


def make_closed_book(seed: int, sizes: Sizes) -> Family:
    """Facts by rank, the first stated often, the last hardly; one question on each of most."""
    rng = random.Random(f"{seed} closed book")
    roles = sizes.roles()
    facts = make_facts(rng, ceil(FACTS_FOR_A_QUESTION * len(roles)))
    require_supply("closed_book", "corpus examples", len(facts), sizes.corpus)
    asked = rng.sample(facts, len(roles))
    questions = [
        Question(fact.group, role, fact.asked(rng), fact.aliases(), distractors=[])
        for fact, role in zip(asked, roles, strict=True)
    ]
    stated = dict(zip(facts, power_law(len(facts), sizes.corpus), strict=True))
    corpus = [
        Exchange(fact.asked(rng), fact.told())
        for fact, mentions in stated.items()
        for _ in range(mentions)
    ]
    evaluated = set(asked[: sizes.evaluation])
    return Family(
        corpus,
        questions,
        propose(seed, stated, evaluated, sizes.proposals),
        discuss(seed, [fact for fact in stated if fact not in evaluated], sizes.discussions),
    )


def propose(seed: int, stated: dict[Fact, int], evaluated: set[Fact], count: int) -> list[Proposal]:
    """Answers on facts that are not `evaluated`; some of them, and more of those on facts that the
    corpus seldom states, name the value of another town."""
    rng = random.Random(f"{seed} closed book proposals")
    facts = [fact for fact in stated if fact not in evaluated]
    values = _values(stated)
    proposals = []
    for fact in rng.choices(facts, k=count):
        hard = stated[fact] < RARE
        right = draw_right(rng, hard)
        others = [value for value in values[fact.relation.name] if value != fact.value]
        told = fact if right or not others else replace(fact, value=rng.choice(others))
        right = told is fact
        proposals.append(Proposal(fact.asked(rng), told.told(), right, confidence(right, hard)))
    return proposals


def discuss(seed: int, facts: Sequence[Fact], count: int) -> list[Discussion]:
    """Three towns' values as replies to a question on one of the given facts."""
    rng = random.Random(f"{seed} closed book discussions")
    values = _values(facts)
    discussions = []
    for fact in rng.choices(facts, k=count):
        others = [value for value in values[fact.relation.name] if value != fact.value]
        said = [fact.value, *rng.sample(others, min(2, len(others)))]
        meanings = tuple(replace(fact, value=value).replies() for value in said)
        discussions.append(Discussion(fact.asked(rng), meanings))
    return discussions


def _values(facts: Iterable[Fact]) -> dict[str, list[str]]:
    """What the facts say of any town, for each relation."""
    values: dict[str, set[str]] = {relation.name: set() for relation in RELATIONS}
    for fact in facts:
        values[fact.relation.name].add(fact.value)
    return {name: sorted(said) for name, said in values.items()}


def make_facts(rng: random.Random, count: int) -> list[Fact]:
    """`count` facts in random order, most frequent first: each town has one of each relation."""
    towns = invented_words(rng, ceil(count / len(RELATIONS)), 3)
    pools = [(relation, relation.values(rng)) for relation in RELATIONS]
    facts = [
        Fact(relation, town, rng.choice(values)) for relation, values in pools for town in towns
    ]
    return rng.sample(facts, count)


def power_law(ranks: int, total: int) -> list[int]:
    """How often each rank is stated: about rank^-EXPONENT, once at least, `total` in all."""
    weights = [rank**-EXPONENT for rank in range(1, ranks + 1)]
    spare = total - ranks
    counts = [1 + int(spare * weight / sum(weights)) for weight in weights]
    for rank in range(total - sum(counts)):
        counts[rank] += 1
    return counts
