"""Elementary word problems: sums and differences within 24, as short stories."""

import random
from itertools import cycle, product
from typing import NamedTuple

from trace_workflow.demo.family import Discussion, Exchange, Family, Question, Sizes, word_by_word

LARGEST = 16  # the largest number in a story
WITHIN = 24  # the largest sum
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
QUESTION_SHARE = 0.85  # of the pairs of numbers; the corpus shows them in other stories


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
        """The same for all stories about these two numbers and this operation."""
        operation = "add" if self.operation == "+" else "subtract"
        return f"{operation}-{max(self.a, self.b)}-{min(self.a, self.b)}"

    def equation(self, result: int | None = None) -> str:
        """The equation, with `result` instead of the true one unless it is null."""
        return f"{self.a} {self.operation} {self.b} = {self.result if result is None else result}"


def make_arithmetic(seed: int, sizes: Sizes) -> Family:
    """Questions use some pairs of numbers, discussions the others.

    The corpus shows all pairs: a tiny model memorises sums and does not learn to add.
    """
    rng = random.Random(f"{seed} arithmetic")
    pairs = [(a, b) for a in range(2, LARGEST + 1) for b in range(1, a)]
    rng.shuffle(pairs)
    question_pairs = pairs[: round(QUESTION_SHARE * len(pairs))]
    other_pairs = pairs[len(question_pairs) :]
    evaluated = round(sizes.share * len(question_pairs))
    questions = [
        *_questions(rng, question_pairs[:evaluated], "evaluation", sizes.evaluation),
        *_questions(rng, question_pairs[evaluated:], "training", sizes.training),
    ]
    sums = [draw_sum(rng, *rng.choice(pairs)) for _ in range(sizes.corpus)]
    corpus = [
        Exchange(story(rng, task), f"{task.equation()}. The answer is {task.result}.")
        for task in sums
    ]
    rng = random.Random(f"{seed} arithmetic discussions")
    discussed = [draw_sum(rng, *rng.choice(other_pairs)) for _ in range(sizes.discussions)]
    return Family(corpus, questions, [discuss(rng, task) for task in discussed])


def draw_sum(rng: random.Random, a: int, b: int, operation: str = "") -> Sum:
    """A sum of two numbers, in either order, or their difference, `a` being the larger."""
    if a + b > WITHIN or (operation or rng.choice("+-")) == "-":
        return Sum("-", a, b)
    return Sum("+", *rng.sample((a, b), 2))


def story(rng: random.Random, task: Sum) -> str:
    """A story that asks for the result of `task`."""
    name, other = rng.sample(NAMES, 2)
    template = rng.choice(STORIES[task.operation])
    return template.format(n=name, m=other, t=rng.choice(THINGS), a=task.a, b=task.b)


def discuss(rng: random.Random, task: Sum) -> Discussion:
    """The result and two close ones, each as an equation, in a sentence and bare."""
    close = [result for result in range(task.result - 3, task.result + 4) if result > 0]
    wrong = rng.sample([result for result in close if result != task.result], 2)
    meanings = tuple(
        tuple(map(word_by_word, (task.equation(result), f"The answer is {result}", str(result))))
        for result in (task.result, *wrong)
    )
    return Discussion(story(rng, task), meanings)


def _questions(
    rng: random.Random, pairs: list[tuple[int, int]], role: str, count: int
) -> list[Question]:
    """`count` different stories, spread evenly over the pairs and both operations."""
    questions: dict[str, Question] = {}
    for operation, pair in cycle(product("+-", pairs)):
        if len(questions) == count:
            break
        task = draw_sum(rng, *pair, operation)
        text = story(rng, task)
        questions.setdefault(text, Question(task.group, role, text, [str(task.result)], []))
    return list(questions.values())
