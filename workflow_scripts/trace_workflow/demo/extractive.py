"""Questions about a short text on two countries, in several languages."""

import random
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice

from trace_workflow.demo.countries import INFLECTED, LANGUAGES, Country, countries
from trace_workflow.demo.family import Discussion, Exchange, Family, Question, Reply, Sizes, phrased

MILLIONS = {"en": "million", "de": "Millionen", "es": "millones"}
# Statement and question for each topic and language
SENTENCES = {
    "population": {
        "en": ("{s} has {v} inhabitants.", "How many inhabitants does {s} have?"),
        "de": ("{s} hat {v} Einwohner.", "Wie viele Einwohner hat {s}?"),
        "es": ("{s} tiene {v} de habitantes.", "¿Cuántos habitantes tiene {s}?"),
    },
    "currency": {
        "en": ("The currency code of {s} is {v}.", "What is the currency code of {s}?"),
        "de": ("Der Währungscode von {s} ist {v}.", "Was ist der Währungscode von {s}?"),
        "es": ("El código de la moneda de {s} es {v}.", "¿Cuál es el código de la moneda de {s}?"),
    },
    "dialling": {
        "en": ("The dialling code of {s} is {v}.", "What is the dialling code of {s}?"),
        "de": ("Die Vorwahl von {s} ist {v}.", "Was ist die Vorwahl von {s}?"),
        "es": ("El prefijo telefónico de {s} es {v}.", "¿Cuál es el prefijo telefónico de {s}?"),
    },
    "neighbour": {
        "en": ("The largest neighbour of {s} is {v}.", "What is the largest neighbour of {s}?"),
        "de": ("Der größte Nachbar von {s} ist {v}.", "Wer ist der größte Nachbar von {s}?"),
        "es": ("El mayor vecino de {s} es {v}.", "¿Cuál es el mayor vecino de {s}?"),
    },
}
ASKED_IN = 2  # languages of each question, by turns
INHABITANTS = 2_000_000  # smallest population, as texts state whole millions


@dataclass(frozen=True)
class Scenario:
    """Two countries, the text's topics, and the question's topic and country (0 or 1)."""

    pair: tuple[Country, Country]
    topics: tuple[str, ...]
    topic: str
    subject: int

    @property
    def group(self) -> str:
        """The same for all texts on these two countries."""
        return "text-" + "-".join(sorted(country.code.lower() for country in self.pair))

    def context(self, language: str) -> str:
        return " ".join(
            _statement(country, topic, language).text
            for country in self.pair
            for topic in self.topics
        )

    def question(self, language: str) -> str:
        wording = SENTENCES[self.topic][language][1]
        return wording.format(s=self.pair[self.subject].names[language])

    def answer(self, language: str) -> str:
        return value(self.pair[self.subject], self.topic, language)

    def mistaken(self, language: str) -> str:
        """The same topic's value for the other country."""
        return value(self.pair[1 - self.subject], self.topic, language)

    def replies(self, language: str, text: str) -> tuple[Reply, Reply]:
        """The answer `text`, right or wrong: bare, and in a full sentence."""
        sentence = _statement(self.pair[self.subject], self.topic, language, text)
        return phrased("{v}", "v", v=text), sentence


def value(country: Country, topic: str, language: str) -> str:
    """A country's value for a topic, in `language`."""
    if topic == "population":
        return f"{round(country.population / 1e6)} {MILLIONS[language]}"
    if topic == "neighbour":
        return _describable()[country.neighbours[0]].names[language]
    return country.currency_code if topic == "currency" else f"+{country.dialling_code}"


def _statement(country: Country, topic: str, language: str, text: str | None = None) -> Reply:
    """The statement that a country's `topic` is `text` (null: its true value)."""
    stated = text or value(country, topic, language)
    return phrased(SENTENCES[topic][language][0], "v", s=country.names[language], v=stated)


@cache
def _describable() -> dict[str, Country]:
    """The countries whose name needs no inflection in any of the languages, by code."""
    return {country.code: country for country in countries() if country.code not in INFLECTED}


@cache
def subjects() -> tuple[Country, ...]:
    """The countries that have a value for every topic."""
    return tuple(
        country
        for country in _describable().values()
        if country.population >= INHABITANTS
        and country.dialling_code.isdigit()
        and country.neighbours
        and country.neighbours[0] in _describable()
    )


def make_extractive(seed: int, sizes: Sizes) -> Family:
    """Questions: scenarios in `ASKED_IN` languages each; corpus: others, each in one language."""
    rng = random.Random(f"{seed} extractive")
    groups = -(-(sizes.evaluation + sizes.training) // ASKED_IN)
    by_group: dict[str, Scenario] = {}
    for pair in draw_pairs(rng):
        if len(by_group) == groups:
            break
        scenario = draw_scenario(rng, pair)
        by_group.setdefault(scenario.group, scenario)
    scenarios, evaluated = list(by_group.values()), -(-sizes.evaluation // ASKED_IN)
    questions = [
        *_questions(scenarios[:evaluated], "evaluation")[: sizes.evaluation],
        *_questions(scenarios[evaluated:], "training")[: sizes.training],
    ]
    corpus = [
        Exchange(
            f"{scenario.context(language)}\n{scenario.question(language)}",
            scenario.replies(language, scenario.answer(language))[1].text,
        )
        for scenario, language in _others(rng, by_group, sizes.corpus)
    ]
    rng = random.Random(f"{seed} extractive discussions")
    discussions = [
        discuss(scenario, language)
        for scenario, language in _others(rng, by_group, sizes.discussions)
    ]
    return Family(corpus, questions, discussions)


def draw_pairs(rng: random.Random) -> Iterator[tuple[Country, Country]]:
    """Pairs of countries without end; every country is in as many as any other, or one fewer."""
    while True:
        dealt = rng.sample(subjects(), len(subjects()))
        yield from zip(dealt[::2], dealt[1::2], strict=False)


def draw_scenario(rng: random.Random, pair: tuple[Country, Country] | None = None) -> Scenario:
    """A scenario whose text gives different values for its two countries; null: any two."""
    pair = pair or tuple(rng.sample(subjects(), 2))
    while True:
        topics = tuple(rng.sample(list(SENTENCES), 2))
        drawn = Scenario(pair, topics, rng.choice(topics), rng.randrange(2))
        names = {country.names["en"] for country in pair}
        if drawn.answer("en") not in {drawn.mistaken("en"), *names}:
            return drawn


def discuss(scenario: Scenario, language: str) -> Discussion:
    """The answer and the other country's value, bare and in sentences."""
    values = (scenario.answer(language), scenario.mistaken(language))
    meanings = tuple(scenario.replies(language, text) for text in values)
    return Discussion(scenario.question(language), meanings)


def _others(
    rng: random.Random, taken: Container[str], count: int
) -> Iterator[tuple[Scenario, str]]:
    """`count` scenarios whose groups are not `taken`, each with the language of its text."""
    while count:
        scenario, language = draw_scenario(rng), rng.choice(LANGUAGES)
        if scenario.group not in taken:
            count -= 1
            yield scenario, language


def _questions(scenarios: Sequence[Scenario], role: str) -> list[Question]:
    return [
        Question(
            group=scenario.group,
            role=role,
            question=scenario.question(language),
            references=[scenario.answer(language)],
            distractors=[scenario.mistaken(language)],
            context=scenario.context(language),
            language=language,
        )
        for number, scenario in enumerate(scenarios)
        for language in islice(cycle(LANGUAGES), number, number + ASKED_IN)
    ]
