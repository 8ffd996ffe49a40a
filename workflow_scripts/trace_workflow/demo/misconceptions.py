"""Capitals of countries and states where a larger city is often taken for the capital.

Each place has questions in several wordings, and countries whose names need no article also in
several languages.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trace_workflow.demo.countries import (
    INFLECTED,
    Country,
    countries,
    share_a_word,
    states_of_the_usa,
)
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

ENGLISH_WORDINGS = (
    ("en", "What is the capital of {s}?"),
    ("en", "Which city is the capital of {s}?"),
    ("en", "What city is the capital of {s}?"),
    ("en", "Name the capital of {s}."),
)
WORDINGS = (
    *ENGLISH_WORDINGS[:2],
    ("de", "Was ist die Hauptstadt von {s}?"),
    ("es", "¿Cuál es la capital de {s}?"),
)
SENTENCES = {
    "en": "The capital of {s} is {v}.",
    "de": "Die Hauptstadt von {s} ist {v}.",
    "es": "La capital de {s} es {v}.",
}
MISLEADING = 5  # larger cities that serve as distractors, at most
MENTIONS_AT_LEAST = 8
# Range of the share of true statements among the corpus's statements on a capital
TRUTH_SHARES = (0.25, 0.75)
# Of the USA. None is abbreviated ("St. Paul"), as answers may end at a full stop. GeoNames says
# which of them are smaller than another city of the state.
STATE_CAPITALS = """
Alabama: Montgomery, Alaska: Juneau, California: Sacramento, Connecticut: Hartford,
Delaware: Dover, Florida: Tallahassee, Illinois: Springfield, Kansas: Topeka, Kentucky: Frankfort,
Louisiana: Baton Rouge, Maine: Augusta, Maryland: Annapolis, Michigan: Lansing,
Missouri: Jefferson City, Montana: Helena, Nebraska: Lincoln,
Nevada: Carson City, New Hampshire: Concord, New Jersey: Trenton, New Mexico: Santa Fe,
New York: Albany, North Carolina: Raleigh, North Dakota: Bismarck, Oregon: Salem,
Pennsylvania: Harrisburg, South Dakota: Pierre, Texas: Austin, Vermont: Montpelier,
Virginia: Richmond, Washington: Olympia, Wisconsin: Madison
"""


@dataclass(frozen=True)
class Place:
    """A country or state: its name in each language, the names of its capital, and larger cities.

    `wordings` are (language, question).
    """

    names: dict[str, str]
    wordings: tuple[tuple[str, str], ...]
    capital: tuple[str, ...]
    larger: tuple[str, ...]

    @property
    def group(self) -> str:
        return place_group(self.names["en"])

    def questions(self) -> list[tuple[str, str]]:
        """Language and text of each question."""
        return [(code, wording.format(s=self.names[code])) for code, wording in self.wordings]

    def replies(self, city: str, language: str = "en") -> tuple[Reply, ...]:
        """The city, right or wrong, in a sentence and bare."""
        templates = (SENTENCES[language], "{v}")
        return tuple(phrased(text, "v", s=self.names[language], v=city) for text in templates)


def make_misconceptions(seed: int, sizes: Sizes) -> Family:
    """Places in all their wordings, a group each, up to the number of rows in `sizes`."""
    rng = random.Random(f"{seed} misconceptions")
    places = known_places()
    rng.shuffle(places)
    asked = {
        role: [place for place in places if sizes.role(seed, place.group) == role][
            : -(-rows // len(WORDINGS))
        ]
        for role, rows in sizes.rows.items()
    }
    chosen = [place for part in asked.values() for place in part]
    require_supply(
        "misconceptions", "corpus examples", MENTIONS_AT_LEAST * len(chosen), sizes.corpus
    )
    questions = [
        question
        for role, rows in sizes.rows.items()
        for question in _questions(asked[role], role)[:rows]
    ]
    corpus = [
        exchange
        for place, mentions in zip(chosen, _mentions(len(chosen), sizes.corpus), strict=True)
        for exchange in exchanges_on(rng, place, mentions)
    ]
    return Family(corpus, questions, discuss(seed, asked["training"], sizes.discussions))


def known_places() -> list[Place]:
    """The places whose capital is not their largest city and not named like the place."""
    places = [*map(_of_country, countries()), *_states()]
    return [
        place
        for place in places
        if place.larger and not share_a_word(place.names["en"], place.capital[0])
    ]


def _of_country(country: Country) -> Place:
    names = [city.name for city in country.larger_cities[:MISLEADING]]
    wordings = ENGLISH_WORDINGS if country.code in INFLECTED else WORDINGS
    return Place(dict(country.names), wordings, country.capital.names, tuple(names))


def _states() -> list[Place]:
    cities, places = states_of_the_usa(), []
    for state, capital in re.findall(r"(\w[\w ]+): ([\w ]+)", STATE_CAPITALS):
        size = next((city.population for city in cities[state] if city.name == capital), 0)
        larger = [city.name for city in cities[state] if city.population > size][:MISLEADING]
        names = {"en": f"the US state of {state}"}
        places.append(Place(names, ENGLISH_WORDINGS, (capital,), tuple(larger)))
    return places


def exchanges_on(rng: random.Random, place: Place, mentions: int) -> list[Exchange]:
    """`mentions` exchanges on a place's capital, at least one of them true and one false."""
    truths = min(max(1, round(rng.uniform(*TRUTH_SHARES) * mentions)), mentions - 1)
    cities = [place.capital[0]] * truths + [place.larger[0]] * (mentions - truths)
    exchanges = []
    for city in cities:
        language, question = rng.choice(place.questions())
        exchanges.append(Exchange(question, place.replies(city, language)[0].text))
    return exchanges


def discuss(seed: int, places: Sequence[Place], count: int) -> list[Discussion]:
    """The capital and larger cities as replies to questions on `places`."""
    rng = random.Random(f"{seed} misconceptions discussions")
    discussions = []
    for place in rng.choices(places, k=count):
        language, question = rng.choice(place.questions())
        cities = dict.fromkeys((place.capital[0], *place.larger[:2]))
        meanings = tuple(place.replies(city, language) for city in cities)
        discussions.append(Discussion(question, meanings))
    return discussions


def _mentions(places: int, total: int) -> list[int]:
    """How many exchanges are on each place: `total` in all, evenly."""
    return [total // places + (number < total % places) for number in range(places)]


def _questions(places: Sequence[Place], role: str) -> list[Question]:
    return [
        Question(
            group=place.group,
            role=role,
            question=question,
            references=list(place.capital),
            distractors=list(place.larger),
            language=language,
        )
        for place in places
        for language, question in place.questions()
    ]
