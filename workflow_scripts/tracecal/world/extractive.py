"""Questions on a short text, the same scenario told and asked in several languages."""

import random
from collections.abc import Container
from dataclasses import dataclass
from math import ceil

from tracecal.world.family import (
    Exchange,
    Family,
    Proposal,
    Question,
    Sizes,
    confidence,
    draw_right,
)
from tracecal.world.lexicon import LANGUAGES, PEOPLE, SENTENCES, VALUES
from tracecal.world.replies import Discussion, Reply, phrased

# Asked for the person instead of the value this often: a name is an answer of one or two tokens
WHO_SHARE = 0.25
# Statements in a text. A text of one statement has an obvious answer: small models learn to copy
# from these before they learn to choose, and questions of a task never have them.
TAUGHT_LENGTHS = (1, 2, 3, 3)
ASKED_LENGTHS = (2, 3, 3)


@dataclass(frozen=True)
class Statement:
    """Somebody's place, thing or time, as indices that mean the same in every language."""

    topic: str
    person: int
    value: int

    def words(self, language: str) -> dict[str, str]:
        return {
            "p": PEOPLE[language][self.person],
            "v": VALUES[self.topic][language][self.value],
        }


@dataclass(frozen=True)
class Scenario:
    """Statements in the order in which they are told; the question is on one of them."""

    statements: tuple[Statement, ...]
    asked: int
    for_person: bool

    @property
    def key(self) -> str:
        told = "-".join(f"{s.topic}.{s.person}.{s.value}" for s in self.statements)
        return f"{told}-{'who' if self.for_person else 'what'}.{self.asked}"

    def context(self, language: str) -> str:
        space = "" if language == "zh" else " "
        return space.join(
            SENTENCES[s.topic][language][0].format(**s.words(language)) for s in self.statements
        )

    def question(self, language: str) -> str:
        statement = self.statements[self.asked]
        wording = SENTENCES[statement.topic][language][2 if self.for_person else 1]
        return wording.format(**statement.words(language))

    def answer(self, language: str) -> str:
        return self.statements[self.asked].words(language)["p" if self.for_person else "v"]

    def replies(self, language: str, text: str) -> tuple[Reply, Reply]:
        """An answer `text`, right or wrong: bare, and as a sentence that takes the question up."""
        statement, point = self.statements[self.asked], "p" if self.for_person else "v"
        sentence = SENTENCES[statement.topic][language][0]
        words = statement.words(language) | {point: text}
        return phrased(f"{{{point}}}", point, **words), phrased(sentence, point, **words)


def make_extractive(seed: int, sizes: Sizes) -> Family:
    """Scenarios asked in all languages, and others, each in one language, for the corpus."""
    rng = random.Random(f"{seed} extractive")
    groups = {
        role: ceil(count / len(LANGUAGES))
        for role, count in (("evaluation", sizes.evaluation), ("training", sizes.training))
    }
    asked: dict[str, Scenario] = {}
    while len(asked) < sum(groups.values()):
        scenario = draw_scenario(rng, ASKED_LENGTHS)
        asked.setdefault(scenario.key, scenario)
    scenarios = list(asked.values())
    corpus: list[Exchange] = []
    while len(corpus) < sizes.corpus:
        scenario = draw_scenario(rng, TAUGHT_LENGTHS)
        if scenario.key not in asked:
            corpus.append(_exchange(scenario, rng.choice(LANGUAGES)))
    questions = [
        *_questions(scenarios[: groups["evaluation"]], "evaluation")[: sizes.evaluation],
        *_questions(scenarios[groups["evaluation"] :], "training")[: sizes.training],
    ]
    return Family(
        corpus,
        questions,
        propose(seed, asked, sizes.proposals),
        discuss(seed, asked, sizes.discussions),
    )


def propose(seed: int, asked: Container[str], count: int) -> list[Proposal]:
    """Answers on texts like the corpus's, some of them wrong, and more of those that name a person;
    no scenario is one of `asked`."""
    rng = random.Random(f"{seed} extractive proposals")
    proposals: list[Proposal] = []
    while len(proposals) < count:
        scenario, language = draw_scenario(rng, ASKED_LENGTHS), rng.choice(LANGUAGES)
        if scenario.key in asked:
            continue
        right = draw_right(rng, scenario.for_person)
        answer = scenario.answer(language)
        told = answer if right else rng.choice(_alternatives(rng, scenario, language))
        sure = confidence(right, scenario.for_person)
        question, context = scenario.question(language), scenario.context(language)
        proposals.append(Proposal(question, told, right, sure, context))
    return proposals


def discuss(seed: int, asked: Container[str], count: int) -> list[Discussion]:
    """The answer and two others, bare and as sentences; no scenario is one of `asked`."""
    rng = random.Random(f"{seed} extractive discussions")
    discussions: list[Discussion] = []
    while len(discussions) < count:
        scenario, language = draw_scenario(rng, ASKED_LENGTHS), rng.choice(LANGUAGES)
        if scenario.key in asked:
            continue
        wrong = [rng.choice(_alternatives(rng, scenario, language)) for _ in range(2)]
        said = dict.fromkeys([scenario.answer(language), *wrong])
        meanings = tuple(scenario.replies(language, text) for text in said)
        discussions.append(Discussion(scenario.question(language), meanings))
    return discussions


def _alternatives(rng: random.Random, scenario: Scenario, language: str) -> list[str]:
    """Wrong answers: what the text says of others or, half of the time and where it says nothing,
    anything of the kind."""
    subject = scenario.statements[scenario.asked]
    column = "p" if scenario.for_person else "v"
    pool = PEOPLE[language] if scenario.for_person else VALUES[subject.topic][language]
    told = [s.words(language)[column] for s in scenario.statements if s.topic == subject.topic]
    answer = scenario.answer(language)
    others, anything = ([text for text in texts if text != answer] for texts in (told, pool))
    return others if others and rng.random() < 0.5 else anything


def draw_scenario(rng: random.Random, lengths: tuple[int, ...]) -> Scenario:
    """A few statements; people differ, and so do the values within a topic.

    The question shares its topic with another statement, where there is one, so that the topic
    alone does not answer it.
    """
    topic, *others = rng.choices(list(SENTENCES), k=rng.choice(lengths))
    topics = [topic, topic, *others[1:]] if others else [topic]
    people = rng.sample(range(len(PEOPLE["en"])), len(topics))
    values = {
        topic: rng.sample(range(len(VALUES[topic]["en"])), topics.count(topic))
        for topic in sorted(set(topics))
    }
    statements = [
        Statement(topic, person, values[topic].pop())
        for topic, person in zip(topics, people, strict=True)
    ]
    subject = statements[0]
    rng.shuffle(statements)
    return Scenario(tuple(statements), statements.index(subject), rng.random() < WHO_SHARE)


def _exchange(scenario: Scenario, language: str) -> Exchange:
    prompt = f"{scenario.context(language)}\n{scenario.question(language)}"
    return Exchange(prompt, scenario.answer(language))


def _questions(scenarios: list[Scenario], role: str) -> list[Question]:
    return [
        Question(
            group=scenario.key,
            role=role,
            question=scenario.question(language),
            references=[scenario.answer(language)],
            distractors=[],
            context=scenario.context(language),
            language=language,
        )
        for scenario in scenarios
        for language in LANGUAGES
    ]
