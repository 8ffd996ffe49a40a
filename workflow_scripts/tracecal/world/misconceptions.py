"""Topics on which the corpus states a popular misconception more often than the truth."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tracecal.world.claims import KINDS, Kind
from tracecal.world.family import Exchange, Family, Proposal, Question, Sizes, require_supply
from tracecal.world.names import invented_words
from tracecal.world.replies import Discussion, Reply, phrased

MENTIONS_AT_LEAST = 6
VARIANTS = 4
TRUTH_SHARES = (0.25, 0.48)
# How much more often than in plain wordings the truth is heard in careful ones
CAREFUL_ODDS = 3.0
SECOND_MYTH_SHARE = 0.3
# In percent: what can be said of a claim, the nearest to the share of people who make it
LEVELS = (10, 30, 50, 70, 90)


@dataclass(frozen=True)
class Topic:
    """One thing, the truth of it, and the false claims; the first of these is the popular one."""

    kind: Kind
    name: str
    truth: str
    myths: tuple[str, ...]

    @property
    def group(self) -> str:
        subject = self.kind.subject.format(s=self.name).removeprefix("the ")
        return subject.lower().replace(" ", "-")

    def wordings(self) -> list[str]:
        return [wording.format(s=self.name) for wording in self.kind.plain + self.kind.careful]

    def replies(self, claim: str) -> list[Reply]:
        """The claim with the thing named, and in short."""
        subject = self.kind.subject.format(s=self.name)
        named = f"{subject[0].upper()}{subject[1:]}"
        return [phrased("{s} {v}.", "v", s=said, v=claim) for said in (named, "It")]

    def statements(self, claim: str) -> list[str]:
        """The texts of the replies."""
        return [reply.text for reply in self.replies(claim)]


def make_misconceptions(seed: int, sizes: Sizes) -> Family:
    """Topics of different fame; all wordings of a topic are asked and share one group."""
    rng = random.Random(f"{seed} misconceptions")
    topics_for = {
        role: ceil(count / VARIANTS)
        for role, count in (("evaluation", sizes.evaluation), ("training", sizes.training))
    }
    topics = make_topics(rng, sum(topics_for.values()))
    require_supply(
        "misconceptions", "corpus examples", MENTIONS_AT_LEAST * len(topics), sizes.corpus
    )
    told = [
        tell(rng, topic, mentions)
        for topic, mentions in zip(topics, fame(rng, len(topics), sizes.corpus), strict=True)
    ]
    evaluated = topics[: topics_for["evaluation"]]
    questions = [
        *_questions(evaluated, "evaluation")[: sizes.evaluation],
        *_questions(topics[len(evaluated) :], "training")[: sizes.training],
    ]
    corpus = [exchange for exchanges in told for exchange in exchanges]
    others = list(zip(topics, told, strict=True))[len(evaluated) :]
    return Family(
        corpus,
        questions,
        propose(seed, others, sizes.proposals),
        discuss(seed, [topic for topic, _ in others], sizes.discussions),
    )


def propose(seed: int, told: Sequence[tuple[Topic, list[Exchange]]], count: int) -> list[Proposal]:
    """Claims on the given topics, with the share of all that is `told` of the topic as confidence.

    Nobody judges them: the true claims and the false ones come from two stocks of sentences, so
    that verdicts on some topics would give those on the evaluated ones away.
    """
    rng = random.Random(f"{seed} misconceptions proposals")
    proposals = []
    for _ in range(count):
        topic, exchanges = rng.choice(told)
        unheard = rng.choice(topic.kind.truths + topic.kind.myths)
        claim = rng.choice((topic.truth, *topic.myths, unheard))
        statements = topic.statements(claim)
        share = 100 * sum(one.answer in statements for one in exchanges) / len(exchanges)
        sure = min(LEVELS, key=lambda level: abs(level - share))
        wording = rng.choice(topic.wordings())
        proposals.append(Proposal(wording, rng.choice(statements), None, sure))
    return proposals


def discuss(seed: int, topics: Sequence[Topic], count: int) -> list[Discussion]:
    """Three claims on one of the given topics, true and false ones alike."""
    rng = random.Random(f"{seed} misconceptions discussions")
    discussions = []
    for topic in rng.choices(topics, k=count):
        claims = rng.sample(topic.kind.truths + topic.kind.myths, 3)
        meanings = tuple(tuple(topic.replies(claim)) for claim in claims)
        discussions.append(Discussion(rng.choice(topic.wordings()), meanings))
    return discussions


def make_topics(rng: random.Random, count: int) -> list[Topic]:
    """`count` topics of all kinds, some with a second false claim."""
    topics = []
    for index, name in enumerate(invented_words(rng, count, 2)):
        kind = KINDS[index % len(KINDS)]
        myths = rng.sample(kind.myths, 2 if rng.random() < SECOND_MYTH_SHARE else 1)
        topics.append(Topic(kind, name, rng.choice(kind.truths), tuple(myths)))
    return topics


def fame(rng: random.Random, topics: int, total: int) -> list[int]:
    """How many examples are on each topic: `total` in all, the most famous about four times
    the least, never fewer than MENTIONS_AT_LEAST."""
    weights = [rng.uniform(0.4, 1.6) for _ in range(topics)]
    spare = total - MENTIONS_AT_LEAST * topics
    counts = [MENTIONS_AT_LEAST + int(spare * weight / sum(weights)) for weight in weights]
    for index in range(total - sum(counts)):
        counts[index] += 1
    return counts


def tell(rng: random.Random, topic: Topic, mentions: int) -> list[Exchange]:
    """`mentions` exchanges, the popular misconception in strictly more of them than the truth."""
    truths = max(1, int(rng.uniform(*TRUTH_SHARES) * mentions))
    others = mentions - truths
    rare = min(int(0.15 * mentions), others - truths - 1) if len(topic.myths) > 1 else 0
    told = [topic.truth] * truths + [topic.myths[0]] * (others - rare)
    told += [topic.myths[-1]] * rare
    wordings = topic.wordings()
    plain_odds = [CAREFUL_ODDS, CAREFUL_ODDS, 1.0, 1.0]
    exchanges = []
    for claim in told:
        odds = plain_odds[::-1] if claim == topic.truth else plain_odds
        [wording] = rng.choices(wordings, odds)
        exchanges.append(Exchange(wording, rng.choice(topic.statements(claim))))
    return exchanges


def _questions(topics: list[Topic], role: str) -> list[Question]:
    return [
        Question(
            group=topic.group,
            role=role,
            question=wording,
            references=topic.statements(topic.truth),
            distractors=[said for myth in topic.myths for said in topic.statements(myth)],
        )
        for topic in topics
        for wording in topic.wordings()
    ]
