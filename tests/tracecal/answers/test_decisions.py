"""Answers of one decision, and the share of a chosen option."""

import math

import pytest

from tracecal.answers.reading import Reading
from tracecal.answers.row import read_row
from tracecal.answers.tokens import option_share
from tracecal.errors import WrongRow


@pytest.mark.parametrize(
    ("row", "answer", "probability", "options"),
    [
        ({"answer": "yes", "probability": 0.8}, "yes", 0.8, None),
        ({"prediction": "cat", "probabilities": {"cat": 0.2, "dog": 0.8}}, "cat", 0.2, (0.2, 0.8)),
        ({"probs": {"A": 0.7, "B": 0.2, "C": 0.1}}, "A", 0.7, (0.7, 0.2, 0.1)),
        ({"choice": "B", "logits": {"A": math.log(3), "B": 0.0}}, "B", 0.25, (0.75, 0.25)),
        ({"decision": 1, "prob": 1.0, "correct": "no"}, "1", 1.0, None),
    ],
)
def test_a_decision_is_a_trace_of_one_token(row, answer, probability, options):
    record = read_row({"id": "a"} | row, Reading())
    assert record.answer == answer
    assert record.surprisal == pytest.approx([-math.log(probability)])
    if options is None:
        assert record.entropy is None
    else:
        assert record.entropy == pytest.approx([-sum(p * math.log(p) for p in options)])
    assert record.correct == (False if "correct" in row else None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"answer": "x", "probs": {"A": 0.7, "B": 0.2}}, "is none of its options"),
        ({"answer": "A", "probs": {"A": 0.9, "B": 0.9}}, "sum to more than 1"),
        ({"answer": "A", "probability": 1.5}, "not above 0 and at most 1"),
        ({"answer": "A", "probs": {"A": 0.0, "B": 1.0}}, "not above 0"),
        ({"answer": "A"}, "neither a probability of its answer nor those of its options"),
    ],
)
def test_numbers_that_are_no_probabilities_are_refused(row, reason):
    with pytest.raises(WrongRow, match=reason):
        read_row({"id": "a"} | row, Reading(format="decision"))


@pytest.mark.parametrize(
    "row",
    [
        {"answer": "yes", "logprobs": [-0.1], "probability": 0.8},
        {"answer": "yes", "probabilities": [0.9, 0.8]},
        {"answer": "yes", "probability": True},
    ],
)
def test_rows_with_tokens_are_no_decisions(row):
    record = read_row({"id": "a"} | row, Reading())
    assert record.surprisal is None or len(record.surprisal) == len(row.get("probabilities", [1]))


def judged(chosen, **alternatives):
    top = [{"token": text, "logprob": math.log(p)} for text, p in alternatives.items()]
    logprob = math.log(alternatives[chosen])
    before = {"token": '{"answer": "', "logprob": -0.1, "top_logprobs": []}
    content = [before, {"token": chosen, "logprob": logprob, "top_logprobs": top}]
    choice = {"message": {"content": '{"answer": "' + chosen}, "logprobs": {"content": content}}
    return {"id": "a", "choices": [choice]}


@pytest.mark.parametrize(
    ("row", "options", "share"),
    [
        (judged("B", A=0.2, B=0.6, x=0.2), ["A", "B", "C"], 0.75),
        (judged("4", **{"5": 0.1, "4": 0.3, " 5": 0.2, "four": 0.4}), list("12345"), 0.6),
        (judged("maybe", yes=0.1, maybe=0.9), ["yes", "no"], None),
    ],
)
def test_the_share_of_the_chosen_option_is_a_further_number(row, options, share):
    record = read_row(row, Reading(options=options))
    (column,) = record.also
    assert column["path"] == "options:" + ",".join(options)
    assert column["value"] == (None if share is None else pytest.approx(share))
    again = read_row(row, Reading(also={column["name"]: column["path"]}))  # as a calibrator reads
    assert again.also == record.also
    assert option_share([], column["path"]) is None
