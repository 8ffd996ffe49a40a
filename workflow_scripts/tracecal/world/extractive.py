"""Questions on a short text about two countries, told and asked in several languages."""

import random
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tracecal.world.countries import INFLECTED, LANGUAGES, Country, countries
from tracecal.world.family import Exchange, Family, Question, Sizes
from tracecal.world.replies import Discussion, Reply, phrased

MILLIONS = {"en": "million", "de": "Millionen", "es": "millones"}
# For each topic and language: statement and question
SENTENCES = {
    "population": {
        "en": ("{s} has {v} inhabitants.", "How many inhabitants does {s} have?"),
        "de": ("{s} hat {v} Einwohner.", "Wie viele Einwohner hat {s}?"),
        "es": ("{s} tiene {v} de habitantes.", "¿Cuántos habitantes tiene {s}?"),
    },
    "currency": {
        "en": ("The currency code of {s} is {v}.", "What is the currency code of {s}?"),
        "de": ("Der Währungscode von {s} ist {v}.", "Was ist der Währungscode von {s}?"),
        "es": (
            "El código de la moneda de {s} es {v}.",
            "¿Cuál es el código de la moneda de {s}?",
        ),
    },
    "dialling": {
        "en": ("The dialling code of {s} is {v}.", "What is the dialling code of {s}?"),
        "de": ("Die Vorwahl von {s} ist {v}.", "Was ist die Vorwahl von {s}?"),
        "es": (
            "El prefijo telefónico de {s} es {v}.",
            "¿Cuál es el prefijo telefónico de {s}?",
        ),
    },
    "neighbour": {
        "en": ("The largest neighbour of {s} is {v}.", "What is the largest neighbour of {s}?"),
        "de": ("Der größte Nachbar von {s} ist {v}.", "Wer ist der größte Nachbar von {s}?"),
        "es": ("El mayor vecino de {s} es {v}.", "¿Cuál es el mayor vecino de {s}?"),
    },
}
INHABITANTS = 2_000_000  # that a country has at least, to be told of in whole millions


@dataclass(frozen=True)
class Scenario:
    """Two countries, the topics that the text is on, the one asked for and of which of the two."""

    pair: tuple[Country, Country]
    topics: tuple[str, ...]
    asked: str
    subject: int

    @property
    def key(self) -> str:
        codes = "-".join(one.code.lower() for one in self.pair)
        return f"{codes}-{'-'.join(self.topics)}-{self.asked}.{self.subject}"

    def context(self, language: str) -> str:
        return " ".join(
            _statement(one, topic, language).text for one in self.pair for topic in self.topics
        )

    def question(self, language: str) -> str:
        wording = SENTENCES[self.asked][language][1]
        return wording.format(s=self.pair[self.subject].names[language])

    def answer(self, language: str) -> str:
        return value(self.pair[self.subject], self.asked, language)

    def mistaken(self, language: str) -> str:
        """What the text says of the other country."""
        return value(self.pair[1 - self.subject], self.asked, language)

    def replies(self, language: str, text: str) -> tuple[Reply, Reply]:
        """An answer `text`, right or wrong: bare, and as a sentence that takes the question up."""
        sentence = _statement(self.pair[self.subject], self.asked, language, text)
        return phrased("{v}", "v", v=text), sentence


def value(country: Country, topic: str, language: str) -> str:
    """What a text in `language` says of a country."""
    if topic == "population":
        return f"{round(country.population / 1e6)} {MILLIONS[language]}"
    if topic == "neighbour":
        return _named()[country.neighbours[0]].names[language]
    return country.currency_code if topic == "currency" else f"+{country.dialling_code}"


def _statement(country: Country, topic: str, language: str, text: str | None = None) -> Reply:
    """That of a topic `text` is true of a country; null: what is true."""
    told = text or value(country, topic, language)
    return phrased(SENTENCES[topic][language][0], "v", s=country.names[language], v=told)


@cache
def _named() -> dict[str, Country]:
    """The countries that can be told of in all languages, by their codes."""
    return {one.code: one for one in countries() if one.code not in INFLECTED}


@cache
def subjects() -> tuple[Country, ...]:
    """Those of which all topics have something to tell."""
    return tuple(
        one
        for one in _named().values()
        if one.population >= INHABITANTS
        and one.dialling_code.isdigit()
        and one.neighbours
        and one.neighbours[0] in _named()
    )


def make_extractive(seed: int, sizes: Sizes) -> Family:
    """Scenarios asked in all languages, and others, each in one language, for the corpus."""
    rng = random.Random(f"{seed} extractive")
    groups = -(-(sizes.evaluation + sizes.training) // len(LANGUAGES))
    asked: dict[str, Scenario] = {}
    while len(asked) < groups:
        scenario = draw_scenario(rng)
        asked.setdefault(scenario.key, scenario)
    scenarios, evaluated = list(asked.values()), sizes.evaluated(groups)
    questions = [
        *_questions(scenarios[:evaluated], "evaluation")[: sizes.evaluation],
        *_questions(scenarios[evaluated:], "training")[: sizes.training],
    ]
    corpus = [
        Exchange(f"{one.context(language)}\n{one.question(language)}", _told(one, language))
        for one, language in _others(rng, asked, sizes.corpus)
    ]
    rng = random.Random(f"{seed} extractive discussions")
    discussions = [
        discuss(one, language) for one, language in _others(rng, asked, sizes.discussions)
    ]
    return Family(corpus, questions, discussions)


def draw_scenario(rng: random.Random) -> Scenario:
    """Two countries of which the text says different things on what is asked for."""
    while True:
        pair = tuple(rng.sample(subjects(), 2))
        topics = tuple(rng.sample(list(SENTENCES), 2))
        drawn = Scenario(pair, topics, rng.choice(topics), rng.randrange(2))
        named = {one.names["en"] for one in pair}
        if drawn.answer("en") not in {drawn.mistaken("en"), *named}:
            return drawn


def discuss(scenario: Scenario, language: str) -> Discussion:
    """The answer and what is true of the other country, bare and as sentences."""
    said = (scenario.answer(language), scenario.mistaken(language))
    meanings = tuple(scenario.replies(language, text) for text in said)
    return Discussion(scenario.question(language), meanings)


def _others(
    rng: random.Random, asked: Container[str], count: int
) -> Iterator[tuple[Scenario, str]]:
    """`count` scenarios that are not `asked`, with the language that each is told in."""
    found = 0
    while found < count:
        scenario, language = draw_scenario(rng), rng.choice(LANGUAGES)
        if scenario.key not in asked:
            found += 1
            yield scenario, language


def _told(scenario: Scenario, language: str) -> str:
    return scenario.replies(language, scenario.answer(language))[1].text


def _questions(scenarios: Sequence[Scenario], role: str) -> list[Question]:
    return [
        Question(
            group=scenario.key,
            role=role,
            question=scenario.question(language),
            references=[scenario.answer(language)],
            distractors=[scenario.mistaken(language)],
            context=scenario.context(language),
            language=language,
        )
        for scenario in scenarios
        for language in LANGUAGES
    ]
