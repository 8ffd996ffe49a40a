"""The laxer rule that a task may select: F1 with a threshold."""

import pytest

from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.correctness.label import judge
from trace_workflow.correctness.verdict import Example


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


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="squad_f1"):
        CorrectnessSettings(correctness="vibes")
