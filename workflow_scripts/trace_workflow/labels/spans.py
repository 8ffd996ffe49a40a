"""Where references occur among the words of an answer, and whether they are negated."""

from collections.abc import Sequence

from trace_workflow.labels.normalisation import claim_words

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
