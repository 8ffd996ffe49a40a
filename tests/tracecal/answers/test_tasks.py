"""Answers to several tasks in one file are neither pooled nor decided in silence."""

import polars as pl
import pytest

from support.labelled_answers import answers, stored
from tracecal.answers.reading import Reading
from tracecal.answers.row import read_row
from tracecal.calibrator.trace_kinds import describe_mix, other_task
from tracecal.calibrator.training_set import answers_of_task, task_names


def of_tasks(*tasks, n=30):
    frames = [answers(n, seed=seed, row_task=task) for seed, task in enumerate(tasks)]
    place = pl.int_range(pl.len()).cast(pl.String)
    return pl.concat(frames).with_columns(example_id=place)


@pytest.mark.parametrize(
    "row",
    [
        {"task": "cities"},
        {"task_name": "cities", "task": None},
        {"metadata": {"task": "cities"}},
    ],
)
def test_a_row_names_its_task(row):
    assert read_row({"id": "a", "logprobs": [-0.1]} | row, Reading()).row_task == "cities"
    other = {name: {"label": "cities"} for name in row}
    assert read_row({"id": "a", "logprobs": [-0.1]} | other, Reading()).row_task is None


def test_the_named_task_is_calibrated_on_alone(caplog):
    frame = of_tasks("cities", "sums", None)
    assert answers_of_task(frame, "sums")["example_id"].to_list() == [str(n) for n in range(30, 60)]
    assert "2 tasks: cities (30), sums (30). Those to sums are used, and 60 left out" in caplog.text


def test_pooled_tasks_are_said_and_stored(caplog):
    fitted_on = stored(of_tasks("sums", "cities"), splits={"count": 1})["fitted_on"]
    assert "2 tasks, which are pooled" in caplog.text and fitted_on["n"] == 60
    assert fitted_on["row_tasks"] == ["cities", "sums"]


@pytest.mark.parametrize("tasks", [(None, None), ("cities", "cities"), ("cities", None)])
def test_one_task_is_no_news(tasks, caplog):
    frame = of_tasks(*tasks)
    assert answers_of_task(frame, "t").equals(frame) and not caplog.text


def test_instructions_are_no_names_of_tasks():
    frame = of_tasks("x").with_columns(row_task="example_id")
    assert task_names(frame) == {} and answers_of_task(frame, "3").height == 30


def test_answers_to_another_task_are_not_decided():
    new = of_tasks("cities", None, "sums", n=1)
    assert other_task("cities", ["cities"]) is other_task(None, ["cities"]) is None
    reason = "to the task 'sums', and the labelled answers were to cities"
    assert reason in other_task("sums", ["cities"])
    assert other_task("sums", []) is None and describe_mix(new, []) is None
    assert other_task("cities", ["cities", "sums"]) is None
    mix = describe_mix(new[:1], ["cities", "sums"])
    assert "a mix of cities, sums, and these answers are to cities alone" in mix
