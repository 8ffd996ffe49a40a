"""Where references occur in answers, negated or not; and the rule for answers in sentences.

The rule `contains` asks that an answer states a reference, and nothing that contradicts it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trace_workflow.correctness.normalisation import claim_words
from trace_workflow.correctness.verdict import Example, Verdict

_NEGATION_WORDS = (
    "not no never neither nor without false untrue myth incorrect wrong isnt arent wasnt werent "
    "dont doesnt didnt cannot cant wont nicht kein keine nie falsch nunca falso jamás 不 没 非"
)
NEGATIONS = frozenset(_NEGATION_WORDS.split())
_NEGATION_REACH = 3
_AT_EITHER_END = frozenset(
    {"yes", "no", "nothing", "none", "nobody", "nowhere", "never", "unknown", "yeah", "nope"}
)
Span = tuple[int, int]  # first word and the one after the last


def find_spans(words: Sequence[str], references: Sequence[str], language: str) -> set[Span]:
    """Where references occur in `words`, as (first, end)."""
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(words):
        positions.setdefault(word, []).append(position)
    spans = set()
    for reference in references:
        reference_words = claim_words(reference, language)
        for start in positions.get(reference_words[0], ()) if reference_words else ():
            end = start + len(reference_words)
            at_an_end = start == 0 or end == len(words)
            if list(words[start:end]) == reference_words and (
                at_an_end or len(reference_words) > 1 or reference_words[0] not in _AT_EITHER_END
            ):
                spans.add((start, end))
    return spans


def not_inside(spans: set[Span], enclosing: set[Span]) -> list[Span]:
    """The `spans` that lie in no larger span of `enclosing`."""
    ends: dict[int, int] = {}  # by first word: the end of the longest span from there
    for start, end in enclosing:
        ends[start] = max(end, ends.get(start, 0))
    longest = max((end - start for start, end in enclosing), default=0)
    return [
        (first, end)
        for first, end in spans
        if not any(
            ends.get(start, 0) >= end and (start, ends[start]) != (first, end)
            for start in range(end - longest, first + 1)
        )
    ]


def negated_before(words: Sequence[str], span: Span) -> bool:
    """Whether a negation precedes `span` closely; an opening "No, ..." does not count."""
    first = max(0, span[0] - _NEGATION_REACH)
    return any(
        words[position] in NEGATIONS and (position > 0 or words[position] not in ("no", "nein"))
        for position in range(first, span[0])
    )


_ENDS = ",;:.!?，。；：！？、"
_BUT = frozenset("but rather instead sondern aber sino pero".split())
_OR = frozenset("or oder o u ou either maybe perhaps possibly vielleicht quizás".split())
_AND = frozenset("and und y e".split())
_REACH = 3  # words around a reference in which a negation applies to it
_LONGEST_GUESS = 3  # words


class Token(NamedTuple):
    """A word of an answer, whether it has a capital, and the punctuation after it."""

    word: str
    capital: bool
    end: str


def contains(text: str, example: Example) -> Verdict:
    """Correct if the answer contains a reference as whole words, and no distractor.

    References and distractors that the question contains are ignored. Of overlapping matches the
    longest counts. A reference is not stated where a negation applies to it ("not Rome", "Rome is
    not ..."), nor where it is one of several guesses ("Rome or Milan", "Rome and Milan", "Rome,
    Milan, Turin"; but "Rome, Italy" is one).
    """
    tokens, language = list(read(text, example.language)), example.language
    words = [token.word for token in tokens]
    question_words = claim_words(example.question, language)

    def spans(names: Sequence[str]) -> set[Span]:
        new = [name for name in names if not find_spans(question_words, [name], language)]
        return find_spans(words, new, language)

    true, false = spans(example.references), spans(example.distractors)
    stated = not_inside(true, false)
    wrong = (true & false).union(not_inside(false, true))
    affirmed = [span for span in stated if not negated(tokens, span)]
    denied = [span for span in wrong if not negated(tokens, span)]
    # From the last to the first, each with the punctuation before it.
    ends = ["", *(token.end for token in tokens)]
    backwards = [token._replace(end=e) for token, e in zip(tokens, ends, strict=False)][::-1]
    guessed = any(is_a_guess(tokens, backwards, span, question_words) for span in affirmed)
    return Verdict(text, bool(affirmed) and not denied and not guessed)


def read(text: str, language: str) -> Iterable[Token]:
    """The words of an answer with their capitals and punctuation."""
    for piece in text.split():
        words = claim_words(piece, language)
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


def is_a_guess(
    tokens: Sequence[Token], backwards: Sequence[Token], span: Span, question_words: Sequence[str]
) -> bool:
    """Whether `span` is one of several guesses that the answer leaves open."""
    first, last = span
    before, after = tokens[max(first - 1, 0) : first], tokens[last : last + 1]
    if any(token.word in _OR for token in before + after):
        return True
    # An item of a list ends at a comma; read backwards, the comma is behind the word before it.
    guesses = _items(tokens, last, tokens[last - 1].end, question_words)
    if before:
        guesses += _items(backwards, len(tokens) - first, before[0].end, question_words)
    return guesses >= 2


def _items(tokens: Sequence[Token], position: int, end: str, question_words: Sequence[str]) -> int:
    """How many further items the list has from `position` on; a last item after "and" counts twice.

    `end` is the punctuation before the first of them.
    """
    count = 0
    while position < len(tokens) and (end in (",", "、") or tokens[position].word in _AND):
        joined = tokens[position].word in _AND
        if joined and position == len(tokens) - 1:
            return 2  # an unfinished list
        start = position + joined
        position = start
        while (
            position < len(tokens)
            and tokens[position].capital
            and position - start < _LONGEST_GUESS
        ):
            position += 1
            if tokens[position - 1].end:
                break
        item = tokens[start:position]
        if not item or (
            position < len(tokens) and not item[-1].end and tokens[position].word not in _AND | _OR
        ):
            return count + (2 if item and joined else 0)
        if not all(token.word in question_words for token in item):
            count += 2 if joined else 1
        if position < len(tokens) and tokens[position].word in _OR:
            return 2
        end = item[-1].end
    return count


def _clause_ends(tokens: Sequence[Token], position: int) -> bool:
    """Whether a clause ends before the token at `position`."""
    return (
        bool(tokens[position - 1].end)
        or tokens[position].word in _BUT
        or tokens[position - 1].word in _BUT
    )
