"""Elementary word problems: sums and differences within twenty, told as stories."""

import random
from itertools import cycle
from typing import NamedTuple

from tracecal.world.family import Exchange, Family, Question, Sizes
from tracecal.world.replies import Discussion, word_by_word

LARGEST = 12  # number in a story
WITHIN = 20  # stay the results
NAMES = (
    "Anna Ben Clara David Emma Felix Grace Hugo Iris Jonas Kira Leo Mira Noah Olga Paul Rosa Sam "
    "Tara Victor"
).split()
THINGS = "apples plums pears nuts shells stones stamps coins cards books pens candles".split()
STORIES = {
    "+": (
        "{n} has {a} {t} and gets {b} more. How many {t} does {n} have now?",
        "{n} has {a} {t} and finds {b} more. How many {t} does {n} have now?",
        "{n} has {a} {t}. {m} gives {n} {b} more. How many {t} does {n} have now?",
        "{n} has {a} {t} and {m} has {b} {t}. How many {t} do they have together?",
    ),
    "-": (
        "{n} has {a} {t} and gives {b} of them to {m}. How many {t} does {n} have left?",
        "{n} has {a} {t} and loses {b} of them. How many {t} does {n} have left?",
        "{n} has {a} {t}. {m} takes {b} of them. How many {t} are left?",
        "{n} has {a} {t} and sells {b} of them. How many {t} are left?",
    ),
}
ASKED_SHARE = 0.5  # of the pairs of numbers; the corpus shows them in other stories


class Sum(NamedTuple):
    """An operation on two numbers; in a difference the larger comes first."""

    operation: str
    a: int
    b: int

    @property
    def result(self) -> int:
        return self.a + self.b if self.operation == "+" else self.a - self.b

    @property
    def group(self) -> str:
        """One for all stories that come to the same."""
        operation = "add" if self.operation == "+" else "subtract"
        return f"{operation}-{max(self.a, self.b)}-{min(self.a, self.b)}"

    def worked(self, result: int | None = None) -> str:
        """The equation, with another result where one is given."""
        return f"{self.a} {self.operation} {self.b} = {self.result if result is None else result}"


def make_arithmetic(seed: int, sizes: Sizes) -> Family:
    """Stories on some pairs of numbers, one after the other; discussions are on the others.

    The corpus shows all pairs: a tiny model remembers sums and does not learn to add.
    """
    rng = random.Random(f"{seed} arithmetic")
    pairs = [(a, b) for a in range(2, LARGEST + 1) for b in range(1, a)]
    rng.shuffle(pairs)
    asked = pairs[: round(ASKED_SHARE * len(pairs))]
    others = pairs[len(asked) :]
    evaluated = sizes.evaluated(len(asked))
    questions = [
        *_questions(rng, asked[:evaluated], "evaluation", sizes.evaluation),
        *_questions(rng, asked[evaluated:], "training", sizes.training),
    ]
    sums = [draw_sum(rng, *rng.choice(pairs)) for _ in range(sizes.corpus)]
    corpus = [
        Exchange(story(rng, one), f"{one.worked()}. The answer is {one.result}.") for one in sums
    ]
    rng = random.Random(f"{seed} arithmetic discussions")
    discussed = [draw_sum(rng, *rng.choice(others)) for _ in range(sizes.discussions)]
    return Family(corpus, questions, [discuss(rng, one) for one in discussed])


def draw_sum(rng: random.Random, a: int, b: int) -> Sum:
    """A sum of two numbers, in either order, or their difference, `a` being the larger."""
    if a + b > WITHIN or rng.random() < 0.5:
        return Sum("-", a, b)
    return Sum("+", *rng.sample((a, b), 2))


def story(rng: random.Random, one: Sum) -> str:
    """A story that asks for `one`."""
    name, other = rng.sample(NAMES, 2)
    template = rng.choice(STORIES[one.operation])
    return template.format(n=name, m=other, t=rng.choice(THINGS), a=one.a, b=one.b)


def discuss(rng: random.Random, one: Sum) -> Discussion:
    """The result and two near ones, each as an equation, in a sentence and bare."""
    near = [result for result in range(one.result - 3, one.result + 4) if result > 0]
    wrong = rng.sample([result for result in near if result != one.result], 2)
    meanings = tuple(
        tuple(map(word_by_word, (one.worked(result), f"The answer is {result}", str(result))))
        for result in (one.result, *wrong)
    )
    return Discussion(story(rng, one), meanings)


def _questions(
    rng: random.Random, pairs: list[tuple[int, int]], role: str, count: int
) -> list[Question]:
    """`count` different stories, on each of the pairs equally many."""
    asked: dict[str, Question] = {}
    for pair in cycle(pairs):
        if len(asked) == count:
            break
        one = draw_sum(rng, *pair)
        text = story(rng, one)
        asked.setdefault(text, Question(one.group, role, text, [str(one.result)], []))
    return list(asked.values())
