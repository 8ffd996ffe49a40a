"""Answers to one question: by group, by what was asked, and by traces that are no chance."""

import pytest

from tracecal.answers.groups import group_answers
from tracecal.answers.record import Record
from tracecal.answers.row import as_frame
from tracecal.errors import InputError

LONG = [0.1234, 0.5678, 1.2345]


def answer(place, surprisal, **details):
    return Record(f"a{place}", surprisal, answer=details.pop("answer", "yes"), **details)


def n_groups(*records):
    return group_answers(as_frame(records))["group_id"].n_unique()


@pytest.mark.parametrize(
    "surprisal",
    [[0.0], [0.0001, 0.0002, 0.0003], [0.0, 0.012, 0.0012, 0.0345], [0.1234, 0.1234, 0.5678]],
)
def test_equal_short_traces_are_of_different_questions(surprisal):
    """At four decimals the traces of sure answers repeat: verdicts on them may differ."""
    right, wrong = answer(1, surprisal, correct=True), answer(2, surprisal, correct=False)
    assert n_groups(right, wrong) == 2


@pytest.mark.parametrize("question", [{"prompt": "q"}, {"asked": "d1"}, {}])
def test_equal_answers_to_one_question_must_not_contradict_each_other(question):
    right, wrong = (answer(n, LONG, correct=n == 1, **question) for n in (1, 2))
    with pytest.raises(InputError, match="correct in 'a1' and incorrect in 'a2'"):
        n_groups(right, wrong)
    assert n_groups(right, answer(3, LONG, correct=True, **question)) == 1


def test_equal_traces_of_questions_known_to_differ_may_have_different_verdicts():
    right, wrong = (answer(n, LONG, correct=n == 1, asked=f"d{n}") for n in (1, 2))
    assert n_groups(right, wrong) == 1  # kept together nevertheless, perhaps a copy
