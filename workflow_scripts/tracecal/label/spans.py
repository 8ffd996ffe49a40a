"""Where references occur among the words of an answer, and whether they are negated."""

from collections.abc import Sequence

from tracecal.label.normalise import claim

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


def finds(words: Sequence[str], references: Sequence[str], language: str) -> set[Span]:
    """Where references occur in `words`, as (first, end)."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    spans = set()
    for reference in references:
        reference_words = claim(reference, language)
        for start in places.get(reference_words[0], ()) if reference_words else ():
            end = start + len(reference_words)
            at_an_end = start == 0 or end == len(words)
            if list(words[start:end]) == reference_words and (
                at_an_end or len(reference_words) > 1 or reference_words[0] not in _AT_EITHER_END
            ):
                spans.add((start, end))
    return spans


def inside_larger(span: Span, others: set[Span]) -> bool:
    return any(a <= span[0] and span[1] <= b and (a, b) != span for a, b in others)


def negated_before(words: Sequence[str], span: Span) -> bool:
    """Whether a negation precedes `span` closely; an opening "No, ..." does not count."""
    first = max(0, span[0] - _NEGATION_REACH)
    return any(
        words[place] in NEGATIONS and (place > 0 or words[place] not in ("no", "nein"))
        for place in range(first, span[0])
    )
