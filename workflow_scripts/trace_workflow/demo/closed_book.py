"""Questions about countries and cities, to be answered from memory: one fact at a time, or several
in one answer (`make_records`).
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from trace_workflow.demo.countries import Country, countries, share_a_word
from trace_workflow.demo.family import (
    Discussion,
    Exchange,
    Family,
    Question,
    Reply,
    Sizes,
    phrased,
    place_group,
    require_supply,
)

# Questions and statements of each relation
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
    """A fact about `subject`; `values` are the answer's names, and statements use the first.

    `fame` is the population of the place it is about; `rank`, of a city, its place among its
    country's.
    """

    relation: str
    subject: str
    values: tuple[str, ...]
    fame: int
    rank: int = 0

    @property
    def group(self) -> str:
        return place_group(self.subject)

    def wordings(self) -> list[str]:
        return [wording.format(s=self.subject) for wording in WORDINGS[self.relation]]

    def statement(self) -> str:
        return self.replies(self.values[0])[0].text

    def replies(self, value: str) -> tuple[Reply, ...]:
        """A value, right or wrong: in a statement, bare, and in other words."""
        templates = (SENTENCES[self.relation], "{v}", "It is {v}.")
        return tuple(phrased(text, "v", s=self.subject, v=value) for text in templates)


def make_closed_book(seed: int, sizes: Sizes) -> Family:
    """One question on each of the most famous facts of all relations."""
    rng = random.Random(f"{seed} closed book")
    known = known_facts()
    asked = {
        role: choose_facts(
            [
                [one for one in facts if sizes.role(seed, one.group) == role]
                for facts in known.values()
            ],
            rows,
        )
        for role, rows in sizes.rows.items()
    }
    facts = sorted(chain(*asked.values()), key=lambda fact: (-fact.fame, fact.group, fact.relation))
    require_supply("closed_book", "corpus examples", len(facts), sizes.corpus)
    questions = [
        Question(fact.group, role, rng.choice(fact.wordings()), list(fact.values), [])
        for role, chosen in asked.items()
        for fact in rng.sample(chosen, len(chosen))
    ]
    corpus = [
        Exchange(rng.choice(fact.wordings()), fact.statement())
        for fact, mentions in zip(facts, power_law(len(facts), sizes.corpus), strict=True)
        for _ in range(mentions)
    ]
    return Family(corpus, questions, discuss(seed, asked["training"], known, sizes.discussions))


def choose_facts(relations: Sequence[Sequence[Fact]], count: int) -> list[Fact]:
    """`count` facts, or all there are, spread evenly over the relations; the most famous first.

    Of cities every country's largest comes before any country's second. There are some hundred
    capitals and currencies; cities fill the rest.
    """
    pools = sorted(relations, key=len)
    chosen: list[Fact] = []
    for number, pool in enumerate(pools):
        wanted = -(-(count - len(chosen)) // (len(pools) - number))
        chosen += sorted(pool, key=lambda fact: (fact.rank, -fact.fame, fact.group))[:wanted]
    return chosen


def known_facts() -> dict[str, list[Fact]]:
    """The facts of each relation whose question does not give the answer away."""
    known_countries = countries()
    capitals = [
        Fact("capital", country.names["en"], country.capital.names, country.population)
        for country in known_countries
        # Where a city is larger than the capital, the family misconceptions asks for the capital.
        if not country.larger_cities and not _given_away(country.names["en"], country.capital.names)
    ]
    return {
        "capital": capitals,
        "country": _cities(known_countries),
        "currency": _currencies(known_countries),
    }


def _cities(known_countries: Sequence[Country]) -> list[Fact]:
    """Facts on cities other than capitals."""
    names = [city.name for country in known_countries for city in country.cities]
    repeated = _repeated(names)
    return [
        Fact("country", city.name, country.spellings, city.population, rank)
        for country in known_countries
        for rank, city in enumerate(
            city
            for city in country.cities
            if city.population >= CITY_AT_LEAST
            and city.name not in {*repeated, country.capital.name}
            and not _given_away(city.name, country.spellings)
        )
    ]


def _currencies(known_countries: Sequence[Country]) -> list[Fact]:
    """Facts on currencies whose name only one country uses, and on the euro."""
    repeated = _repeated([country.currency for country in known_countries]) - {"Euro"}
    return [
        Fact("currency", country.names["en"], (currency,), country.population)
        for country in known_countries
        for currency in [country.currency.removesuffix(" Soberano")]
        if country.currency not in repeated
        and country.code not in TWO_CURRENCIES
        and not share_a_word(country.currency, country.names["en"])
    ]


def _given_away(subject: str, names: Sequence[str]) -> bool:
    return any(share_a_word(subject, name) for name in names)


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def discuss(
    seed: int, facts: Sequence[Fact], known: Mapping[str, Sequence[Fact]], count: int
) -> list[Discussion]:
    """Replies with the right value and two wrong ones, those of other `known` facts, to questions
    about `facts`."""
    rng = random.Random(f"{seed} closed book discussions")
    discussions = []
    for fact in rng.choices(facts, k=count):
        others = {other.values[0] for other in known[fact.relation]}
        wrong = rng.sample(sorted(others - {fact.values[0]}), 2)
        meanings = tuple(fact.replies(value) for value in (fact.values[0], *wrong))
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


# Records: several facts of a country in one answer, each with its own references.


# What currencies are called besides their full names
SHORT_NAMES = {"Yuan Renminbi": ("Yuan", "Renminbi"), "Belarusian ruble": ("Ruble", "Rouble")}
MISLEADING = 5  # larger cities than the capital that serve as distractors, at most


def make_records(seed: int, sizes: Sizes) -> Family:
    """One question on each country, up to the number of rows in `sizes`; no corpus states them."""
    by_role = {
        role: [
            country
            for country in countries()
            if sizes.role(seed, place_group(country.names["en"])) == role
        ][:rows]
        for role, rows in sizes.rows.items()
    }
    questions = [_question(one, role) for role, chosen in by_role.items() for one in chosen]
    return Family([], questions, [])


def facts_of(country: Country) -> dict[str, list[str]]:
    """The names of each fact, none where the country's own name gives it away.

    >>> peru = next(one for one in countries() if one.code == "PE")
    >>> [facts_of(peru)[name] for name in ("continent", "currency", "calling code")]
    [['South America'], ['Sol'], ['51']]
    """
    known = {
        "capital": country.capital.names,
        "largest city": country.cities[0].names,
        "continent": (country.continent,),
        "currency": _currency(country),
        "calling code": (country.dialling_code,) if country.dialling_code.isdigit() else (),
    }
    own = country.names["en"]
    return {
        name: [] if any(share_a_word(own, text) for text in texts) else list(texts)
        for name, texts in known.items()
    }


def _currency(country: Country) -> tuple[str, ...]:
    """The names of a country's currency; none where it has two."""
    if country.code in TWO_CURRENCIES:
        return ()
    name = country.currency.removesuffix(" Soberano")
    return (name, *SHORT_NAMES.get(name, ()))


def _question(country: Country, role: str) -> Question:
    """A question on all facts; the whole answer is judged by its capital."""
    name = country.names["en"]
    larger = [city.name for city in country.larger_cities[:MISLEADING]]
    return Question(
        group=place_group(name),
        role=role,
        question=name,
        references=list(country.capital.names),
        distractors=larger,
        facts=facts_of(country),
    )
