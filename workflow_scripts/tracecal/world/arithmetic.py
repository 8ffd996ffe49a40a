"""Word problems on small numbers whose number pairs the corpus never shows."""

import random
from typing import NamedTuple

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
from tracecal.world.names import FIRST_NAMES
from tracecal.world.replies import Discussion, word_by_word

THINGS = """
apples plums pears nuts shells stones stamps coins cards books pens candles buttons beads marbles
tickets plates cups keys bricks
""".split()
CONTAINERS = "box basket bag drawer crate jar shop cellar barn van".split()

# What a person does to so many more things, or with so many of them: common verbs first
VERBS = {
    "+": """
    gets finds buys wins picks earns makes borrows collects receives inherits gathers adds steals
    catches fetches gains orders obtains acquires
    """.split(),
    "-": """
    loses sells eats breaks drops spends burns lends wastes hides throws ruins donates mails buries
    trades forgets returns discards surrenders
    """.split(),
}
VERB_PROBLEM = "{n} has {a} {t} and {v} {b}. How many {t} does {n} have now?"
OTHER_PROBLEMS = {
    "+": (
        "There are {a} {t} in the {c} and {b} in the {d}. How many {t} are there in all?",
        "{n} has {a} {t} and {m} has {b}. How many {t} do they have together?",
        "{n} counts {a} {t} at noon and {b} at night. How many {t} is that?",
        "The {c} holds {a} {t}. {n} puts in another {b}. How many {t} does it hold now?",
        "{n} had {a} {t}. {m} gives {n} {b}. How many {t} does {n} have now?",
    ),
    "-": (
        "There are {a} {t} in the {c}. {n} takes out {b}. How many {t} does it hold now?",
        "{n} has {a} {t} and {m} has {b}. How many more {t} does {n} have?",
        "{n} has {b} {t} and {m} has {a}. How many fewer {t} does {n} have?",
        "{n} needs {a} {t} and has {b}. How many {t} does {n} lack?",
        "{n} had {a} {t}. {n} gives {m} {b}. How many {t} does {n} have now?",
    ),
}
ASIDES = (
    "{n} is {x} years old.",
    "The {c} cost {x} crowns.",
    "{m} lives at number {x}.",
)
VERB_SHARE = 0.65
# The corpus uses the verb of rank r about r^-VERB_EXPONENT often, the questions all alike
VERB_EXPONENT = 3.0
ASIDE_SHARE = 0.3
HELD_OUT_AT_MOST = 0.6


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
        operation = "add" if self.operation == "+" else "subtract"
        return f"{operation}-{max(self.a, self.b)}-{min(self.a, self.b)}"

    @property
    def pair(self) -> frozenset[int]:
        return frozenset((self.a, self.b))

    @property
    def carried(self) -> bool:
        ones_a, ones_b = self.a % 10, self.b % 10
        return ones_a + ones_b > 9 if self.operation == "+" else ones_a < ones_b


def make_arithmetic(seed: int, sizes: Sizes) -> Family:
    """Sums and differences; no prompt of the corpus shows both numbers of a held-out pair."""
    rng = random.Random(f"{seed} arithmetic")
    sums = {operation: _sums(operation) for operation in VERBS}
    roles = sizes.roles()
    require_supply(
        "arithmetic",
        "held-out sums",
        len(roles),
        int(HELD_OUT_AT_MOST * 2 * min(map(len, sums.values()))),
    )
    asked = _held_out(rng, sums, len(roles))
    asked = [_in_some_order(rng, one) for one in rng.sample(asked, len(asked))]
    questions = [
        Question(
            group=one.group,
            role=role,
            question=_problem(rng, one, 0.0, set()),
            references=[str(one.result)],
            distractors=[],
        )
        for one, role in zip(asked, roles, strict=True)
    ]
    held_out = {one.pair for one in asked}
    taught = {
        operation: [one for one in pool if one.pair not in held_out]
        for operation, pool in sums.items()
    }
    corpus = []
    for _ in range(sizes.corpus):
        one = _in_some_order(rng, rng.choice(taught[rng.choice("+-")]))
        corpus.append(Exchange(_problem(rng, one, VERB_EXPONENT, held_out), worked_answer(one)))
    return Family(
        corpus,
        questions,
        propose(seed, taught, held_out, sizes.proposals),
        discuss(seed, taught, held_out, sizes.discussions),
    )


def propose(
    seed: int, taught: dict[str, list[Sum]], held_out: set[frozenset[int]], count: int
) -> list[Proposal]:
    """Worked answers to problems like the corpus's, some of them wrong: those with a carry more
    often."""
    rng = random.Random(f"{seed} arithmetic proposals")
    proposals = []
    for _ in range(count):
        one = _in_some_order(rng, rng.choice(taught[rng.choice("+-")]))
        right = draw_right(rng, one.carried)
        problem = _problem(rng, one, VERB_EXPONENT, held_out)
        answer = worked_answer(one) if right else wrong_answer(rng, one, held_out)
        proposals.append(Proposal(problem, answer, right, confidence(right, one.carried)))
    return proposals


def discuss(
    seed: int, taught: dict[str, list[Sum]], held_out: set[frozenset[int]], count: int
) -> list[Discussion]:
    """The result worked with the terms in either order and bare, and two wrong answers.

    What a working comes to is what is meant, also where a column of it is misreckoned.
    """
    rng = random.Random(f"{seed} arithmetic discussions")
    discussions = []
    for _ in range(count):
        one = _in_some_order(rng, rng.choice(taught[rng.choice("+-")]))
        turned = Sum("+", one.b, one.a) if one.operation == "+" else one
        right = worked_answer(one)
        wrong = [wrong_answer(rng, one, held_out) for _ in range(2)]
        said = [[right, worked_answer(turned), _misreckoned(rng, right), str(one.result)]]
        of_result = {text.split()[-1]: text for text in wrong}
        said += [[text, _misreckoned(rng, text), result] for result, text in of_result.items()]
        meanings = tuple(tuple(map(word_by_word, texts)) for texts in said)
        discussions.append(Discussion(_problem(rng, one, VERB_EXPONENT, held_out), meanings))
    return discussions


def _misreckoned(rng: random.Random, worked: str) -> str:
    """`worked` with one digit of its columns another one, and the result as it was."""
    columns, result = worked[worked.index(":") :].split(", so")
    sums = worked.removesuffix(f"{columns}, so{result}")
    at = rng.choice([index for index, sign in enumerate(columns) if sign.isdigit()])
    digit = rng.choice([digit for digit in "123456789" if digit != columns[at]])
    return f"{sums}{columns[:at]}{digit}{columns[at + 1 :]}, so{result}"


def wrong_answer(rng: random.Random, one: Sum, held_out: set[frozenset[int]]) -> str:
    """The other operation or a misread number, worked correctly, or a slip in one column.

    No sum on a `held_out` pair is worked.
    """
    other = Sum("-" if one.operation == "+" else "+", max(one.pair), min(one.pair))
    misread = [
        Sum(one.operation, a, one.b)
        for a in range(one.b + 1, 100)
        if (a // 10 == one.a // 10) != (a % 10 == one.a % 10)
    ]
    worked = rng.choice(([other], misread, []))
    worked = [done for done in worked if 10 <= done.result <= 99 and done.pair not in held_out]
    if worked:
        return worked_answer(rng.choice(worked))
    slips = [slip for slip in (-10, -1, 1, 10) if _in_one_column(one, slip)]
    return worked_answer(one, rng.choice(slips))


def _in_one_column(one: Sum, slip: int) -> bool:
    """Whether the result off by `slip` has two digits, one of them other than it should be."""
    tens, ones = divmod(one.result + slip, 10)
    return 1 <= tens <= 9 and (tens == one.result // 10 or ones == one.result % 10)


def worked_answer(one: Sum, slip: int = 0) -> str:
    """The column rationale and the result, of one length for either operation.

    A `slip` of 1 or 10, up or down, is made in the column that it belongs to.

    26+17: 6+7=13, 2+1+1=4, so 43
    43-17: 13-7=6, 4-1-1=2, so 26
    29-3: 9-3=6, 2, so 26
    """
    sign = one.operation
    (tens_a, ones_a), (tens_b, ones_b) = divmod(one.a, 10), divmod(one.b, 10)
    if sign == "-" and one.carried:
        ones_a += 10
    ones = (ones_a + ones_b if sign == "+" else ones_a - ones_b) + (slip if abs(slip) == 1 else 0)
    told = one.result + slip
    terms = [str(digit) for digit in (tens_a, tens_b, int(one.carried)) if digit]
    tens = sign.join(terms) + (f"={told // 10}" if len(terms) > 1 else "")
    return f"{one.a}{sign}{one.b}: {ones_a}{sign}{ones_b}={ones}, {tens}, so {told}"


def _sums(operation: str) -> list[Sum]:
    """One sum for each unordered pair of numbers, both results and larger terms of two digits."""
    pairs = ((a, b) for a in range(10, 100) for b in range(2, a))
    return [one for a, b in pairs if 10 <= (one := Sum(operation, a, b)).result <= 99]


def _held_out(rng: random.Random, sums: dict[str, list[Sum]], count: int) -> list[Sum]:
    """`count` sums, half of them of either operation, no two on one pair of numbers."""
    chosen: dict[frozenset[int], Sum] = {}
    for operation, share in (("+", (count + 1) // 2), ("-", count // 2)):
        free = [one for one in sums[operation] if one.pair not in chosen]
        chosen |= {one.pair: one for one in rng.sample(free, share)}
    return list(chosen.values())


def _in_some_order(rng: random.Random, one: Sum) -> Sum:
    """The terms of an addition the other way round, half of the time."""
    swap = one.operation == "+" and rng.random() < 0.5
    return Sum("+", one.b, one.a) if swap else one


def _problem(
    rng: random.Random, one: Sum, verb_exponent: float, forbidden: set[frozenset[int]]
) -> str:
    """A story that asks for `one`, sometimes with a third number that has no bearing on it.

    With the third number it shows none of the `forbidden` pairs.
    """
    name, other = rng.sample(FIRST_NAMES, 2)
    here, there = rng.sample(CONTAINERS, 2)
    verbs = VERBS[one.operation]
    [verb] = rng.choices(verbs, [rank**-verb_exponent for rank in range(1, len(verbs) + 1)])
    words = dict(n=name, m=other, t=rng.choice(THINGS), c=here, d=there, v=verb, a=one.a, b=one.b)
    template = (
        VERB_PROBLEM if rng.random() < VERB_SHARE else rng.choice(OTHER_PROBLEMS[one.operation])
    )
    story = template.format(**words)
    if rng.random() >= ASIDE_SHARE:
        return story
    aside = rng.choice(ASIDES)
    x = rng.randint(10, 99)
    while frozenset((one.a, x)) in forbidden or frozenset((one.b, x)) in forbidden:
        x = rng.randint(10, 99)
    return f"{aside.format(**words, x=x)} {story}"
