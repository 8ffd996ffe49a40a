"""Questions on countries and cities, to be answered from memory."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tracecal.world.countries import Country, countries, share_a_word
from tracecal.world.family import Exchange, Family, Question, Sizes, require_supply
from tracecal.world.replies import Discussion, Reply, phrased

# How a relation is asked for and told
WORDINGS = {
    "capital": (
        "What is the capital of {s}?",
        "Which city is the capital of {s}?",
        "Name the capital of {s}.",
    ),
    "country": (
        "In which country is the city of {s}?",
        "Which country does the city of {s} belong to?",
        "Name the country in which the city of {s} lies.",
    ),
    "currency": (
        "What is the currency of {s}?",
        "Which currency is used in {s}?",
        "What is the money of {s} called?",
    ),
}
SENTENCES = {
    "capital": "The capital of {s} is {v}.",
    "country": "The city of {s} is in {v}.",
    "currency": "The currency of {s} is the {v}.",
}
CITY_AT_LEAST = 250_000  # inhabitants
TWO_CURRENCIES = frozenset({"BT", "LS", "PA", "ZW"})
EXPONENT = 0.75  # of the frequency with which the corpus states the fact of a rank


@dataclass(frozen=True)
class Fact:
    """What is said of `subject`; `values` are its names, of which the first is told.

    `fame` is the population of the place it is about.
    """

    relation: str
    subject: str
    values: tuple[str, ...]
    fame: int

    @property
    def group(self) -> str:
        return f"{self.relation}-{self.subject.lower().replace(' ', '-')}"

    def wordings(self) -> list[str]:
        return [one.format(s=self.subject) for one in WORDINGS[self.relation]]

    def told(self) -> str:
        return self.replies(self.values[0])[0].text

    def replies(self, value: str) -> tuple[Reply, ...]:
        """A value, right or wrong: as it is told, bare, and in other words."""
        templates = (SENTENCES[self.relation], "{v}", "It is {v}.")
        return tuple(phrased(one, "v", s=self.subject, v=value) for one in templates)


def make_closed_book(seed: int, sizes: Sizes) -> Family:
    """Facts of all relations in turn; a question on each, in one of its wordings."""
    rng = random.Random(f"{seed} closed book")
    rows = sizes.evaluation + sizes.training
    facts = choose_facts(rows)
    require_supply("closed_book", "corpus examples", len(facts), sizes.corpus)
    asked = rng.sample(facts, len(facts))
    evaluated = asked[: sizes.evaluated(len(asked))]
    questions = [
        Question(fact.group, role, rng.choice(fact.wordings()), list(fact.values), [])
        for role, own in (("evaluation", evaluated), ("training", asked[len(evaluated) :]))
        for fact in own
    ]
    corpus = [
        Exchange(rng.choice(fact.wordings()), fact.told())
        for fact, mentions in zip(facts, power_law(len(facts), sizes.corpus), strict=True)
        for _ in range(mentions)
    ]
    return Family(corpus, questions, discuss(seed, asked[len(evaluated) :], sizes.discussions))


def choose_facts(count: int) -> list[Fact]:
    """The `count` most famous facts, or all there are, as many of each relation as can be.

    Of capitals and currencies there are some hundred; cities fill the rest.
    """
    pools = sorted(known_facts().values(), key=len)
    chosen: list[Fact] = []
    for number, pool in enumerate(pools):
        wanted = -(-(count - len(chosen)) // (len(pools) - number))
        chosen += sorted(pool, key=lambda fact: -fact.fame)[:wanted]
    return sorted(chosen, key=lambda fact: (-fact.fame, fact.group))


def known_facts() -> dict[str, list[Fact]]:
    """All facts of each relation whose answer the question does not give away."""
    known = countries()
    capitals = [
        Fact("capital", one.names["en"], one.capital.names, one.population)
        for one in known
        # Where a larger city misleads, the question is one of another family.
        if not one.larger_cities and not _given_away(one.names["en"], one.capital.names)
    ]
    return {"capital": capitals, "country": _cities(known), "currency": _currencies(known)}


def _cities(known: Sequence[Country]) -> list[Fact]:
    names = [city.name for country in known for city in country.cities]
    repeated = _twice(names)
    return [
        Fact("country", city.name, country.spellings, city.population)
        for country in known
        for city in country.cities
        if city.population >= CITY_AT_LEAST
        and city.name not in repeated
        and not _given_away(city.name, country.spellings)
    ]


def _currencies(known: Sequence[Country]) -> list[Fact]:
    """Of currencies that no other country's name stands for: a dollar may be of any."""
    repeated = _twice([one.currency for one in known]) - {"Euro"}
    return [
        Fact("currency", one.names["en"], (one.currency.removesuffix(" Soberano"),), one.population)
        for one in known
        if one.currency not in repeated
        and one.code not in TWO_CURRENCIES
        and not share_a_word(one.currency, one.names["en"])
    ]


def _given_away(asked: str, names: Sequence[str]) -> bool:
    return any(share_a_word(asked, name) for name in names)


def _twice(names: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}


def discuss(seed: int, facts: Sequence[Fact], count: int) -> list[Discussion]:
    """Three values as replies to a question on one of the given facts."""
    rng = random.Random(f"{seed} closed book discussions")
    discussions = []
    for fact in rng.choices(facts, k=count):
        others = {one.values[0] for one in facts if one.relation == fact.relation}
        said = rng.sample(sorted(others - {fact.values[0]}), 2)
        meanings = tuple(fact.replies(value) for value in (fact.values[0], *said))
        discussions.append(Discussion(rng.choice(fact.wordings()), meanings))
    return discussions


def power_law(ranks: int, total: int) -> list[int]:
    """How often each rank is stated: about rank^-EXPONENT, once at least, `total` in all."""
    weights = [rank**-EXPONENT for rank in range(1, ranks + 1)]
    spare = total - ranks
    counts = [1 + int(spare * weight / sum(weights)) for weight in weights]
    for rank in range(total - sum(counts)):
        counts[rank] += 1
    return counts
