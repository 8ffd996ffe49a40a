"""No supervised estimator is trained on what it is measured on; planted leaks are caught."""

import polars as pl
import pytest

from support.supervised_frames import labels, task
from trace_workflow.models.training import constant_rate, held_out, training_rows
from tracecal.errors import InputError


def together(**frames):
    return pl.concat(frame.with_columns(task=pl.lit(slug)) for slug, frame in frames.items())


def rows_of(**tasks):
    judged = {slug: labels(frame) for slug, frame in tasks.items()}
    return training_rows(together(**tasks), together(**judged))


def test_only_training_rows_come_out_with_their_labels():
    rows = rows_of(one=task(), two=task(prefix="b", training=0))
    assert rows.columns == ["task", "example_id", "group_id", "correct"]
    assert rows["example_id"].to_list() == ["a-t0", "a-t1", "a-t2", "a-t3"]
    assert rows["correct"].to_list() == [True, False, True, False]


LEAKS = {
    "id": ({"a_t1": {"example_id": "a-e0"}}, "share id"),
    "group": ({"a_t1": {"group_id": "a-e0"}}, "share group"),
    "group of its own": (
        {"a_t1": {"group_id": "pair"}, "a_e2": {"group_id": "pair"}},
        "share group",
    ),
    "question": ({"a_t1": {"question": "What is a-e1?"}}, "share question and context"),
    "question but for case and spaces": (
        {"a_t1": {"question": " what is  A-e1? "}},
        "share question and context",
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_caught(leak):
    changes, message = LEAKS[leak]
    with pytest.raises(InputError, match=message):
        rows_of(one=task(**changes), two=task(prefix="b"))


def test_a_leak_from_one_task_into_another_is_caught():
    copied = task(prefix="b", b_t0={"question": "What is a-e0?"})
    with pytest.raises(InputError, match=r"1 training row.*'b-t0' of two, share question"):
        rows_of(one=task(), two=copied)
    translated = {"a_e0": {"group_id": "shared"}}, {"b_t0": {"group_id": "shared"}}
    with pytest.raises(InputError, match="share declared group"):
        rows_of(one=task(**translated[0]), two=task(prefix="b", **translated[1]))


def test_another_context_or_a_number_that_two_tasks_use_is_no_leak():
    same_question = {"question": "What is a-e0?", "context": "Elsewhere."}
    assert rows_of(one=task(a_t0=same_question)).height == 4
    numbered = {"example_id": "17", "group_id": "17"}
    rows = rows_of(one=task(a_e0=numbered), two=task(prefix="b", b_t0=numbered))
    assert rows.height == 8


def test_evaluation_labels_play_no_part():
    frame = task()
    judged = labels(frame)
    roles = judged.join(frame, on="example_id")["role"]
    flipped = judged.with_columns(correct=pl.col("correct") ^ (roles == "evaluation"))
    assert not flipped.equals(judged)
    rows, others = (training_rows(together(a=frame), together(a=all)) for all in (flipped, judged))
    assert rows.equals(others)


def test_no_training_rows_and_missing_labels_are_said():
    with pytest.raises(InputError, match=r"no task of one, two has rows of role 'training'"):
        rows_of(one=task(training=0), two=task(training=0, prefix="b"))
    frame = task()
    with pytest.raises(InputError, match="training example 'a-t3' of one has no label"):
        judged = labels(frame).filter(pl.col("example_id") != "a-t3")
        training_rows(together(one=frame), together(one=judged))


def test_translations_never_straddle_the_held_out_part():
    groups = [f"g{index // 3}" for index in range(90)]
    kept_out = held_out(groups, 0.2, seed=1)
    assert sum(kept_out) == 18
    assert len({(group, out) for group, out in zip(groups, kept_out, strict=True)}) == 30
    assert held_out(groups[::-1], 0.2, seed=1) == kept_out[::-1], "the order plays no part"
    assert held_out(groups, 0.2, seed=2) != kept_out


def test_of_few_groups_one_is_held_out_and_of_a_single_one_none():
    assert sorted(held_out(["a", "b"], 0.01, 0)) == [False, True]
    assert sorted(held_out(["a", "b"], 0.99, 0)) == [False, True]
    assert held_out(["a", "a"], 0.5, 0) == [False, False]


def test_one_class_gives_laplaces_rate():
    assert constant_rate([True] * 8) == pytest.approx(9 / 10)
    assert constant_rate([False] * 3) == pytest.approx(1 / 5)
    assert constant_rate([True, False]) is None
