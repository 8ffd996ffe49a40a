"""Correctness rules of one's own; name this file in the configuration as `custom_rules`.

A rule is given the extracted answer and its example (`question`, `references`, `distractors`,
`language`), and says whether the answer is correct. A task file asks for one with
`correctness: custom.within_one`.
"""

from trace_workflow.correctness.numbers import answer_number


def within_one(text, example):
    """Right where the answer's number is at most 1 away from a reference's."""
    number = answer_number(text)
    golds = [answer_number(reference) for reference in example.references]
    return number is not None and any(
        gold and abs(number.value - gold.value) <= 1 for gold in golds
    )


def begins_alike(text, example):
    """Right where the answer begins with a reference, whatever case and whatever follows."""
    return any(text.lower().startswith(reference.lower()) for reference in example.references)


RULES = {"within_one": within_one, "begins_alike": begins_alike}
