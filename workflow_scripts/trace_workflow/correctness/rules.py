"""The correctness rules, one for each kind of task."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from trace_workflow.correctness.containment import contains, find_spans, negated_before, not_inside
from trace_workflow.correctness.normalisation import claim_words, normalise_mlqa, normalise_trivia
from trace_workflow.correctness.numbers import answer_number
from trace_workflow.correctness.verdict import Example, Verdict
from tracecal.errors import InputError

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


def first_line(text: str) -> str:
    """The first line that holds more than whitespace; only a line feed ends a line."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def alias(text: str, example: Example) -> Verdict:
    """Correct if the answer's first line is an alias, by TriviaQA's normalised exact match.

    Beyond the official match, a lead such as "It was" or "The answer is" may stand before the
    alias. What follows the lead must be the alias and nothing else, so "not Mark Twain" is
    never "Mark Twain". An alias that normalises to nothing is ignored, unless there is no other
    ("The The"): then it must match verbatim.
    """
    line = first_line(text)
    prediction = normalise_trivia(line)
    forms = {prediction, _LEAD.sub("", prediction)} - {""}
    aliases = {normalise_trivia(reference) for reference in example.references} - {""}
    correct = bool(forms & aliases) if aliases else _verbatim(line, example.references)
    return Verdict(line, correct)


def squad(text: str, example: Example) -> Verdict:
    """Correct if the answer equals a reference after MLQA's normalisation for the language.

    The official exact match; references that normalise to nothing are treated as in `alias`.
    """
    prediction = normalise_mlqa(text, example.language)
    gold = {normalise_mlqa(reference, example.language) for reference in example.references} - {""}
    return Verdict(text, prediction in gold if gold else _verbatim(text, example.references))


def squad_f1(text: str, example: Example, threshold: float) -> Verdict:
    """Correct if MLQA's F1 with the best reference is at least `threshold`, in (0, 1]."""
    return Verdict(text, f1(text, example.references, example.language) >= threshold)


def f1(text: str, references: Sequence[str], language: str) -> float:
    """MLQA's F1 between the words of the answer and of the best reference, in [0, 1]."""
    words, scores = normalise_mlqa(text, language).split(), [0.0]
    for reference in references:
        gold = normalise_mlqa(reference, language).split()
        if shared := (Counter(words) & Counter(gold)).total():
            scores.append(2 * shared / (len(words) + len(gold)))
    return max(scores)


def truthful(text: str, example: Example) -> Verdict:
    """Correct if the answer is, or contains as whole words, a true reference and no false one.

    Of overlapping matches the longest counts: a false reference inside a true one is part of the
    true one, and vice versa. A reference that is listed as both counts as false. A true one that
    follows a negation ("it is not true that ...") is ignored, and so is a reference such as "yes"
    or "nothing" in the middle of the answer.
    """
    if _verbatim(text, example.references) and not _verbatim(text, example.distractors):
        return Verdict(text, True)
    words = claim_words(text, example.language)
    true = find_spans(words, example.references, example.language)
    false = find_spans(words, example.distractors, example.language)
    affirmed = [span for span in not_inside(true, false) if not negated_before(words, span)]
    denied = (true & false).union(not_inside(false, true))
    return Verdict(text, bool(affirmed) and not denied)


RULES: dict[str, Callable[[str, Example], Verdict]] = {
    "numeric": numeric,
    "alias": alias,
    "squad": squad,
    "truthful": truthful,
    "contains": contains,
}


def _verbatim(text: str, references: Sequence[str]) -> bool:
    """Whether the text is a reference, ignoring case."""
    return bool(text) and text.lower() in {reference.lower() for reference in references}
