"""Errors speak the language of whoever made the mistake: of Python here, of the shell there."""

import json
import pydoc
import re

import pandas as pd
import polars as pl
import pytest

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.api_source import api_parameters
from tracecal.cli.files import flag
from tracecal.cli.main import COMMANDS, main
from tracecal.errors import ARGUMENTS, OF_READING, InputError, in_python

ROW = {"id": "a", "answer": "5", "logprobs": [-0.2]}
LISTED = {
    "content": [
        {
            "token": "5",
            "logprob": -0.2,
            "top_logprobs": [{"token": "5", "logprob": -0.2}, {"token": "7", "logprob": -2}],
        }
    ]
}


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("with --wrong-rows skip.", "with Reading(wrong_rows='skip')."),
        ("--right-from 0.5", "Reading(right_from=0.5)"),
        ("--columns answer=A logprobs=B", "Reading(columns={'answer': 'A', 'logprobs': 'B'})"),
        ("--right ok,good --wrong poor", "Reading(right=['ok', 'good'], wrong=['poor'])"),
        ("give it with --labels.", "give it with Reading(labels=...)."),
        ("--labels 'l.csv:id:is it so?'", "Reading(labels='l.csv:id:is it so?')"),
        ("tested for --error-rate 0.2", "tested for error_rate=0.2"),
        ("either --calibrator, or --accuracy and", "either calibrator, or accuracy and"),
        ("with 'tracecal reading a.jsonl --id x'", "with 'tracecal reading a.jsonl --id x'"),
        ("snakemake --cores all --force a", "snakemake --cores all --force a"),
        ("--looks 0: expected 1", "looks=0: expected 1"),
        ("at most --answers-per-alarm / 5, 200", "at most answers_per_alarm / 5, 200"),
        ("--by meta.site: no row", "by='meta.site': no row"),
        (
            "--most must be 50 or more, or leave --estimator out",
            "most must be 50 or more, or leave estimator out",
        ),
        ("--config seed=x: expected", "--config seed=x: expected"),
        ("nothing to say", "nothing to say"),
    ],
)
def test_options_are_arguments_in_python(typed, written):
    assert in_python(typed) == written
    error = InputError(typed)
    assert (str(error), error.args) == (written, (typed,))


def test_every_option_that_is_an_argument_of_the_api_is_called_so():
    arguments = set()
    for command in COMMANDS.values():
        options = {p.name for p in command.parameters() if p.model is None}
        for name in filter(None, (*command.texts_of, command.options_of)):
            inherited = {p.name for p in api_parameters(name)} & options
            arguments |= {command.flags.get(name, flag(name)) for name in inherited}
    names = {option.removeprefix("--").replace("-", "_") for option in arguments}
    assert names - {"config"} <= ARGUMENTS | OF_READING and {"looks", "after", "by"} <= names
    assert ARGUMENTS - names == {"confidence"}, "which no command has, and messages name"


def test_a_command_names_its_options(tmp_path, capsys, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "logprobs": [5]}\n')
    assert main(["score", "--answers", str(path), "--calibrator", str(path)]) == 1
    assert main(["pick", "--answers", str(path), "--number", "1", "--output", "o.jsonl"]) == 1
    assert "leave them out with --wrong-rows skip" in caplog.text
    assert "Reading(" not in caplog.text


def test_warnings_speak_as_errors_do(tmp_path, caplog):
    row = {"id": "a", "choices": [{"message": {"content": "5"}, "logprobs": LISTED}]}
    tracecal.read_answers([row])
    assert "give the model's with Reading(vocabulary=...)" in caplog.text
    caplog.clear()
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(row)}\n")
    output = str(tmp_path / "o.jsonl")
    assert main(["pick", "--answers", str(path), "--number", "1", "--output", output]) == 0
    assert "give the model's with --vocabulary" in caplog.text and "Reading(" not in caplog.text
    caplog.clear()
    tracecal.read_answers([row])
    assert "Reading(vocabulary=...)" in caplog.text


@pytest.mark.parametrize("source", [[{"id": "a", "logprobs": [5.0]}], None])
def test_rows_and_frames_are_called_so(source):
    name = "the rows" if source else "the frame"
    source = source or pl.DataFrame({"id": ["a"], "logprobs": [[5.0]]})
    with pytest.raises(InputError, match=rf"^{name}: 1 invalid .*Reading\(wrong_rows='skip'\)"):
        tracecal.read_answers(source)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulry": 5}, "Reading: unknown key 'vocabulry' (did you mean 'vocabulary'?)"),
        ({"wrong_rows": "skp"}, "Reading: wrong_rows: Input should be 'stop' or 'skip'"),
        ({"labels": 5}, "Reading: labels: must be a path, or a frame with a column of ids"),
        ({"vocabulary": -1}, "Reading: vocabulary: Input should be greater than 0"),
    ],
)
def test_a_wrong_option_of_reading_is_a_sentence(options, sentence):
    with pytest.raises(InputError, match="^" + re.escape(sentence)):
        Reading(**options)


@pytest.mark.parametrize("library", [pl, pd])
def test_labels_may_be_a_frame(library):
    labels = library.DataFrame({"id": ["b", "a"], "correct": ["yes", "no"]})
    reading = Reading(labels=labels)
    frame = tracecal.read_answers([ROW, ROW | {"id": "b"}], reading=reading)
    assert frame["correct"].to_list() == [False, True]
    with pytest.raises(InputError, match="the frame of labels: none of its 2 "):
        tracecal.read_answers([ROW | {"id": "c"}], reading=reading)


def test_help_shows_fields_and_no_method_of_pydantic():
    text = pydoc.plain(pydoc.render_doc(Reading))
    assert "wrong_rows : {'stop', 'skip'}" in text and "for_new_answers" in text
    assert "model_" not in text and "copy(" not in text
    assert len(text.splitlines()) < 110


def test_a_response_that_cannot_be_read_is_an_input_error(calibrator_file):
    calibrator = tracecal.Calibrator.load(calibrator_file)
    with pytest.raises(InputError, match="the response cannot be read: its format is unknown"):
        calibrator.score_response({"what": 1})
