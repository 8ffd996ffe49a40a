"""The correctness rules: what of an answer is judged, and how it is compared with references."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trace_workflow.config.prompting import until_stop
from trace_workflow.labels.text import (
    NEGATIONS,
    Span,
    answer_number,
    claim,
    finds,
    mlqa,
    negated_before,
    not_inside,
    trivia,
)
from tracecal.errors import InputError
from tracecal.io.expressions import matches


@dataclass(frozen=True)
class Example:
    """A question and its references, by which an answer is judged."""

    example_id: str
    question: str
    references: Sequence[str]
    distractors: Sequence[str] = ()
    language: str = "en"


@dataclass(frozen=True)
class Verdict:
    """The part of the answer that was judged, and whether it is correct."""

    prediction: str
    correct: bool


# Judging answers in sentences: whether they state a reference, and nothing that contradicts it.


_ENDS = ",;:.!?，。；：！？、"
_BUT = frozenset("but rather instead sondern aber sino pero".split())
_OR = frozenset("or oder o u ou either maybe perhaps possibly vielleicht quizás".split())
_AND = frozenset("and und y e".split())
_REACH = 3  # words around a reference in which a negation applies to it
_LONGEST_GUESS = 3  # words


class Token(NamedTuple):
    """A word of `claim`, whether it was written with a capital, and the punctuation after it."""

    word: str
    capital: bool
    end: str


def contains(text: str, example: Example) -> Verdict:
    """Correct if the answer contains a reference as whole words and no distractor.

    References and distractors that the question contains are ignored. Of overlapping matches the
    longest counts. A reference is not stated where a negation applies to it ("not Rome", "Rome is
    not ..."), nor where it is one of several guesses ("Rome or Milan", "Rome and Milan", "Rome,
    Milan, Turin"; but "Rome, Italy" is one).
    """
    tokens, language = list(read(text, example.language)), example.language
    words, question_words = [token.word for token in tokens], claim(example.question, language)
    true, false = (
        finds(
            words,
            [name for name in names if not finds(question_words, [name], language)],
            language,
        )
        for names in (example.references, example.distractors)
    )
    stated = not_inside(true, false)
    wrong = (true & false).union(not_inside(false, true))
    affirmed = [span for span in stated if not negated(tokens, span)]
    denied = [span for span in wrong if not negated(tokens, span)]
    backwards = read_backwards(tokens)
    guessed = any(is_a_guess(tokens, backwards, span, question_words) for span in affirmed)
    return Verdict(text, bool(affirmed) and not denied and not guessed)


def read(text: str, language: str) -> Iterable[Token]:
    """The words of an answer with their capitals and punctuation."""
    for piece in text.split():
        words = claim(piece, language)
        written = piece.lstrip("\"'“”‘’«»([¿¡*_")
        for number, word in enumerate(words, 1):
            last = number == len(words)
            end = piece.rstrip("\"'“”‘’«»)]*_")[-1:] if last else ""
            yield Token(word, written[:1].isupper(), end if end in _ENDS else "")


def negated(tokens: Sequence[Token], span: Span) -> bool:
    """Whether a negation applies to `span`: shortly before or after it, in the same clause."""
    first, last = span[0], span[1]
    while first > max(0, span[0] - _REACH) and not _clause_ends(tokens, first):
        first -= 1
    while last < min(len(tokens), span[1] + _REACH) and not _clause_ends(tokens, last):
        last += 1
    around = tokens[first : span[0]] + tokens[span[1] : last]
    return any(token.word in NEGATIONS for token in around)


def read_backwards(tokens: Sequence[Token]) -> list[Token]:
    """The tokens from the last to the first, each with the punctuation before it."""
    ends = ["", *(token.end for token in tokens)]
    return [token._replace(end=end) for token, end in zip(tokens, ends, strict=False)][::-1]


def is_a_guess(
    tokens: Sequence[Token], backwards: Sequence[Token], span: Span, question_words: Sequence[str]
) -> bool:
    """Whether `span` is one of several guesses among which the answer does not decide."""
    first, last = span
    before, after = tokens[max(first - 1, 0) : first], tokens[last : last + 1]
    if any(token.word in _OR for token in before + after):
        return True
    # An item of a list ends at a comma; read backwards, the comma is behind the word before it.
    others = _items(tokens, last, tokens[last - 1].end, question_words)
    if before:
        others += _items(backwards, len(tokens) - first, before[0].end, question_words)
    return others >= 2


def _items(tokens: Sequence[Token], place: int, end: str, question_words: Sequence[str]) -> int:
    """How many other items the list has from `place` on; a last one after "and" counts double.

    `end` is the punctuation before the first of them.
    """
    count = 0
    while place < len(tokens) and (end in (",", "、") or tokens[place].word in _AND):
        joined = tokens[place].word in _AND
        if joined and place == len(tokens) - 1:
            return 2  # an unfinished list
        start = place + joined
        place = start
        while place < len(tokens) and tokens[place].capital and place - start < _LONGEST_GUESS:
            place += 1
            if tokens[place - 1].end:
                break
        item = tokens[start:place]
        if not item or (
            place < len(tokens) and not item[-1].end and tokens[place].word not in _AND | _OR
        ):
            return count + (2 if item and joined else 0)
        if not all(token.word in question_words for token in item):
            count += 2 if joined else 1
        if place < len(tokens) and tokens[place].word in _OR:
            return 2
        end = item[-1].end
    return count


def _clause_ends(tokens: Sequence[Token], place: int) -> bool:
    """Whether a clause ends before the token at `place`."""
    return (
        bool(tokens[place - 1].end) or tokens[place].word in _BUT or tokens[place - 1].word in _BUT
    )


# The part of a decoded answer that is judged.


def extract(answer: str, stop: Iterable[str] = (), pattern: str | None = None) -> str:
    """The answer before its earliest stop string, narrowed to group 1 of `pattern`'s last match.

    Without a match the whole answer counts: a model that ignores the format may still be correct.
    An answer that begins with a stop string is empty. Whitespace at the ends is removed. Raises
    `InputError` where the pattern takes too long.
    """
    answer = until_stop(answer, stop)
    if pattern is not None and (found := list(matches(pattern, answer))):
        answer = found[-1].group(1) or ""
    return answer.strip()


def first_line(text: str) -> str:
    """The first line that holds more than whitespace; only a line feed ends a line."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


# The correctness rules, one per kind of task.


# After normalisation, where "The answer is" has lost its article and "It's" its apostrophe.
_LEAD = re.compile(
    r"^(?:(?:final |correct )?answer(?: is| was)?"
    r"|(?:it|he|she|they|this|that) (?:is|was|are|were)|(?:it|he|she|that) s) "
)


def numeric(text: str, example: Example) -> Verdict:
    """Correct if the answer's number equals a reference's, exactly, as numbers (51 = 51.0)."""
    golds = {gold.value for reference in example.references if (gold := answer_number(reference))}
    if not golds:
        raise InputError(
            f"example {example.example_id!r}: no reference holds a number "
            f"({example.references[0]!r}), which the rule 'numeric' needs; choose another rule."
        )
    number = answer_number(text)
    return Verdict(number.text if number else text, number is not None and number.value in golds)


def alias(text: str, example: Example) -> Verdict:
    """Correct if the answer's first line is an alias, by TriviaQA's normalised exact match.

    Beyond the official match, a lead such as "It was" or "The answer is" may stand before the
    alias. What follows the lead must be the alias and nothing else, so "not Mark Twain" is
    never "Mark Twain". An alias that normalises to nothing is ignored, unless there is no other
    ("The The"): then it must match verbatim.
    """
    line = first_line(text)
    prediction = trivia(line)
    forms = {prediction, _LEAD.sub("", prediction)} - {""}
    aliases = {trivia(reference) for reference in example.references} - {""}
    correct = bool(forms & aliases) if aliases else _verbatim(line, example.references)
    return Verdict(line, correct)


def squad(text: str, example: Example) -> Verdict:
    """Correct if the answer equals a reference after MLQA's normalisation for the language.

    The official exact match; references that normalise to nothing are treated as in `alias`.
    """
    prediction = mlqa(text, example.language)
    gold = {mlqa(reference, example.language) for reference in example.references} - {""}
    return Verdict(text, prediction in gold if gold else _verbatim(text, example.references))


def squad_f1(text: str, example: Example, threshold: float) -> Verdict:
    """Correct if MLQA's F1 with the best reference is at least `threshold`, in (0, 1]."""
    return Verdict(text, f1(text, example.references, example.language) >= threshold)


def f1(text: str, references: Sequence[str], language: str) -> float:
    """MLQA's F1 between the words of the answer and of the best reference, in [0, 1]."""
    words = mlqa(text, language).split()
    return max(
        (_f1(words, mlqa(reference, language).split()) for reference in references), default=0
    )


def truthful(text: str, example: Example) -> Verdict:
    """Correct if the answer is, or contains as whole words, a true reference and no false one.

    Of overlapping matches the longest counts: a false reference inside a true one is part of the
    true one, and vice versa. A reference that is listed as both counts as false. A true one that
    follows a negation ("it is not true that ...") is ignored, and so is a reference such as "yes"
    or "nothing" in the middle of the answer.
    """
    if _verbatim(text, example.references) and not _verbatim(text, example.distractors):
        return Verdict(text, True)
    words = claim(text, example.language)
    true = finds(words, example.references, example.language)
    false = finds(words, example.distractors, example.language)
    affirmed = [span for span in not_inside(true, false) if not negated_before(words, span)]
    denied = (true & false).union(not_inside(false, true))
    return Verdict(text, bool(affirmed) and not denied)


def truthful_rouge(text: str, example: Example) -> Verdict:
    """Correct if the best ROUGE-1 F with a true reference exceeds that with any false one.

    TruthfulQA's `rouge1_acc` (Lin et al. 2022): laxer than `truthful`, and English only.
    """
    from rouge_score.rouge_scorer import RougeScorer  # a second's import that few runs need

    scorer = RougeScorer(["rouge1"])
    true, false = (
        max(
            (scorer.score(reference, text)["rouge1"].fmeasure for reference in references),
            default=0.0,
        )
        for references in (example.references, example.distractors)
    )
    return Verdict(text, true > false)


RULES: dict[str, Callable[[str, Example], Verdict]] = {
    "numeric": numeric,
    "alias": alias,
    "squad": squad,
    "truthful": truthful,
    "truthful_rouge": truthful_rouge,
    "contains": contains,
}


def _verbatim(text: str, references: Sequence[str]) -> bool:
    """Whether the text is a reference, ignoring case."""
    return bool(text) and text.lower() in {reference.lower() for reference in references}


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    shared = (Counter(words) & Counter(gold)).total()
    return 2 * shared / (len(words) + len(gold)) if shared else 0.0
