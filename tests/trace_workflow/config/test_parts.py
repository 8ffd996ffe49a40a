"""Tasks of parts of answers in a configuration: where they may be named, and what they leave out."""

from pathlib import Path

import pytest

from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
SMOKE = read_yaml(ROOT / "config/smoke.yaml")
TASKS = [*SMOKE["tasks"], {"slug": "records"}, {"slug": "record_facts"}]
PARTS = {"models": ["demo-small"], "tasks": ["record_facts"]}


def run(tasks=TASKS, **study):
    value = SMOKE | {"tasks": tasks, "study": SMOKE["study"] | {"parts": PARTS} | study}
    return load_run(value, "config", ROOT)


def test_parts_stand_apart_from_the_studies_of_whole_answers():
    made = run()
    assert ("demo-small", "record_facts") in made.config.study.pairs()
    assert ("demo-small", "records") not in made.config.study.pairs()
    assert made.missing_parts == {"record_facts": "unanswered"}
    questions = plan(made).families["likelihood"].inputs["task"]
    path = plan(made).path(questions, model="demo-small", task="record_facts")
    assert path == "<results>/work/answered/demo-small/record_facts.parquet"
    path = plan(made).path(questions, model="demo-small", task="records")
    assert path == "<results>/tasks/records.parquet"


def test_of_a_part_there_is_what_a_trace_gives():
    selection = run().selection
    found = {*selection.computed("demo-small", "record_facts").ids}
    assert {"seq_logp", "trace_plus", "stack_of_six"} <= found
    assert found.isdisjoint({"beam_ratio", "mars", "lars", "p_true", "semantic_entropy"})
    assert {*selection.main.ids} > found
    # Of answers that are there for their parts alone: a trained estimator knows none of them.
    assert {*selection.computed("demo-small", "records").ids} == found
    assert selection.computed("demo-small", "arithmetic") == selection.main
    (told,) = selection.warnings
    assert told.startswith(
        "record_facts is made of parts of answers, which do not give beam_ratio,"
    )
    assert "beam_ratio, beam_tail_thinness, beam_entropy (need beams)" in told
    assert {"seq_logp", "log_ridge"} <= {*selection.of_parts.ids} < found


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"parts": PARTS | {"tasks": ["arithmetic"]}}, "'arithmetic' is not made of parts"),
        (
            {"main": {"models": ["demo-small"], "tasks": ["record_facts"]}, "headline": None},
            "'record_facts' is made of parts of answers",
        ),
        ({"tasks": [TASKS[0], TASKS[1], TASKS[3]]}, "'records' is not a task of the run .* arithm"),
        ({"parts": PARTS | {"tasks": ["nothing"]}}, "study.parts.tasks: 'nothing' is not defined"),
        ({"tasks": [*TASKS[:3], {"slug": "record_facts", "limit": 3}]}, "'limit' is not allowed"),
    ],
)
def test_what_may_not_be_written(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        run(**changes)


def test_estimators_that_no_part_can_have_are_refused():
    value = SMOKE | {
        "tasks": TASKS,
        "study": SMOKE["study"] | {"parts": PARTS},
        "estimators": ["beam_ratio"],
    }
    with pytest.raises(InputError, match="none that can be computed for 'record_facts'"):
        load_run(value, "config", ROOT)
