"""The laxer rules that a task may select: F1 with a threshold, ROUGE difference."""

import json

import pytest

from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.labels.label import judge
from trace_workflow.labels.verdict import Example


def verdict(text, references, distractors=(), **spec):
    example = Example("e", "?", references, distractors)
    return judge(text, example, CorrectnessSettings(**spec)).correct


def test_hand_computed_f1_against_its_threshold():
    # "big red barn" and "the red barn": two shared words of three and two, F1 = 4/5.
    for threshold, right in ((0.8, True), (0.81, False), (0.5, True)):
        spec = {"correctness": "squad_f1", "f1_threshold": threshold}
        assert verdict("big red barn", ["the red barn"], **spec) is right


def test_f1_of_nothing_in_common_and_of_nothing_said():
    assert not verdict("a cat", ["dogs"], correctness="squad_f1")
    assert not verdict("", ["dogs"], correctness="squad_f1")


def test_rouge_difference_by_hand():
    # Shared unigrams: true 2 of 3 and 2 -> F 4/5; false 1 of 3 and 3 -> F 1/3.
    true, false = ["grow taller"], ["people grow wings"]
    assert verdict("you grow taller", true, false, correctness="truthful_rouge")
    assert not verdict("people have wings", true, false, correctness="truthful_rouge")
    assert not verdict("", true, false, correctness="truthful_rouge"), "a tie is not right"


def test_rouge_on_real_rows(shared_data):
    rows = (shared_data / "truthfulqa/generation_817.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(row) for row in rows if row][:200]
    for name, expected in (("correct_answers", 0.97), ("incorrect_answers", 0.01)):
        judged = [
            verdict(
                answer,
                row["correct_answers"],
                row["incorrect_answers"],
                correctness="truthful_rouge",
            )
            for row in rows
            for answer in row[name]
            if answer
        ]
        rate = sum(judged) / len(judged)
        assert (rate >= expected) if name == "correct_answers" else (rate <= expected)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="truthful_rouge"):
        CorrectnessSettings(correctness="vibes")
