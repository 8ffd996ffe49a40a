"""The files that commands read and write: none of the first is lost, none of the second half made."""

import errno
import json
import os
from pathlib import Path

import polars as pl
import pytest

from support.labelled_answers import answers
from tracecal.answers.parts.parts import read_parts
from tracecal.cli.files import READ, WRITTEN
from tracecal.cli.main import COMMANDS as BY_NAME
from tracecal.cli.main import main

CALIBRATE = "calibrate --answers a.jsonl --task t --vocabulary 151936 "
COMMANDS = [
    "pick --answers a.jsonl --number 5 --output a.jsonl",
    "explore --answers a.html --output a.html",
    "score --answers a.jsonl --calibrator C.json --output a.jsonl",
    "score --answers a.jsonl --calibrator C.json --beside b.jsonl --output b.jsonl",
    CALIBRATE + "--output a.jsonl",
    CALIBRATE + "--output C.json --config C.json",
    CALIBRATE + "--output C.json --parts C.json",
    CALIBRATE + "--output C.html --report C.html",
    "plan --calibrator c.svg --error-rate 0.1 --picture c.svg",
    "label a.jsonl --output a.jsonl",
    "label x.promise.json --output x.jsonl --error-rate 0.2",
    "replay --answers a.jsonl --weights weights --output weights/model.arrow",
    "watch --answers a.jsonl --calibrator C.json --state C.json",
    "serve --upstream http://x --calibrator C.json --watch C.json",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()


def written():
    """Files of the names in COMMANDS that hold usable answers, so that nothing else is wrong."""
    content = answers(40).write_ndjson()
    for name in (
        "a.jsonl",
        "b.jsonl",
        "a.html",
        "c.svg",
        "weights/model.arrow",
        "C.json",
        "C.html",
    ):
        Path(name).write_text(content)
    for name in ("a.labelled.jsonl", "x.promise.json"):
        Path(name).write_text(content)
    return contents()


def contents():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_writes_to_a_file_that_it_reads(command, caplog):
    before = written()
    assert main(command.split()) == 1
    assert "would replace it: name another" in caplog.text
    assert contents() == before


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_to_an_input_is_that_input(link, caplog):
    before = written()
    link(Path("other.jsonl"), Path("a.jsonl").absolute())
    Path("below").mkdir()
    for output in ("other.jsonl", "below/../a.jsonl", str(Path("a.jsonl").absolute())):
        assert main(f"pick --answers a.jsonl --number 5 --output {output}".split()) == 1
    assert caplog.text.count("name another") == 3
    assert contents() == before | {Path("other.jsonl"): before[Path("a.jsonl")]}


def test_every_option_that_may_name_a_file_is_known_as_one():
    """A new option of text is an input, an output or listed here."""
    texts = "address task revision model id group label columns filter host upstream"
    texts += " estimator question who allow_host allow_origin one_per also by"
    known = {*READ, *WRITTEN, *texts.split()}
    for name, command in BY_NAME.items():
        for option in command.build().params:
            kinds = str(option.type_descriptor.annotation)
            if "str" in kinds and option.metavar not in ("NAME", "<int>", "<float>"):
                assert option.name in known, (name, option.name)


def test_verdicts_are_added_to_a_file_of_verdicts_alone(caplog):
    """An export that is one line without an end is no verdict that a kill cut short."""
    answers(40).write_ndjson("a.jsonl")
    Path("a.labelled.jsonl").write_text('[{"id": 1, "annotations": []}]')
    before = contents()
    assert main("label a.jsonl --labels a.labelled.jsonl".split()) == 1
    said = "is not a whole verdict as 'tracecal label' writes it: name another --output"
    assert said in caplog.text
    assert contents() == before


@pytest.mark.parametrize(
    "command",
    [
        "explore --answers a.jsonl --output page.jsonl",
        CALIBRATE + "--output C.json --report a.jsonl",
        "plan --accuracy 0.5 --auroc 0.8 --error-rate 0.1 --picture a.png",
        "replay --answers a.jsonl --weights w --output a.safetensors",
    ],
)
def test_pages_pictures_and_traces_have_their_own_suffix(command, capsys):
    with pytest.raises(SystemExit):
        main(command.split())
    assert "expected a name that ends in ." in capsys.readouterr().err


@pytest.mark.parametrize("output", ["/dev/null", "folder.jsonl", "."])
def test_a_device_or_folder_is_not_replaced(output, caplog):
    answers(40).write_ndjson("a.jsonl")
    Path("folder.jsonl").mkdir()
    assert main(f"pick --answers a.jsonl --number 5 --output {output}".split()) == 1
    assert f"{output} is a folder or a device" in caplog.text
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_is_one_sentence(caplog, monkeypatch):
    answers(40).write_ndjson("a.jsonl")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main("pick --answers a.jsonl --number 5 --output o.jsonl".split()) == 1
    assert caplog.messages == ["error: o.jsonl: No space left on device."]
    assert {path.name for path in Path().iterdir()} == {"a.jsonl", "weights"}


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("pick --answers a.jsonl --answers b.jsonl --number 5 --output o.jsonl", "--answers"),
        (CALIBRATE + "--output C.json --output D.json", "--output"),
        (CALIBRATE + "--output C.json --task=u", "--task"),
        ("plan --accuracy 0.5 --accuracy 0.6 --auroc 0.8 --error-rate 0.1", "--accuracy"),
    ],
)
def test_an_option_of_one_value_is_given_once(command, option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    error = " ".join(capsys.readouterr().err.split())
    assert option in error and "takes one value" in error
    assert list(Path().iterdir()) == [Path("weights")]


@pytest.mark.parametrize("module", ["import sys; sys.exit(0)", "raise SystemExit"])
def test_a_module_that_ends_the_program_is_an_error(module, caplog):
    answers(40).write_ndjson("a.jsonl")
    Path("mine.py").write_text(module)
    assert main((CALIBRATE + "--output C.json --estimators mine.py").split()) == 1
    assert "mine.py: does not run (SystemExit" in caplog.text
    assert not Path("C.json").exists()


def test_what_is_not_utf8_is_a_sentence(caplog):
    for value in ("\udcff", "caf\udce9.jsonl"):
        assert main([*CALIBRATE.split(), "--output", "C.json", "--columns", f"a={value}"]) == 1
        assert "is not UTF-8" in caplog.messages[-1]


@pytest.mark.parametrize("answers", ["", ".", "/"])
def test_a_name_that_is_no_files_is_a_sentence(answers, caplog):
    assert main(["label", answers]) == 1
    assert f"{answers!r} names no file: give the file of the answers to label" in caplog.text


def test_an_output_that_links_to_itself_is_a_sentence(caplog):
    answers(40).write_ndjson("a.jsonl")
    Path("o.jsonl").symlink_to("p.jsonl")
    Path("p.jsonl").symlink_to("o.jsonl")
    assert main("pick --answers a.jsonl --number 5 --output o.jsonl".split()) == 1
    assert "o.jsonl: Too many levels of symbolic links" in caplog.text


@pytest.mark.parametrize("error", [MemoryError, pl.exceptions.PanicException])
def test_what_does_not_fit_in_memory_is_a_sentence(error, caplog, monkeypatch):
    def fail(*_, **__):
        raise error

    answers(40).write_ndjson("a.jsonl")
    monkeypatch.setattr("tracecal.answers.answers.open_rows", fail)
    assert main("pick --answers a.jsonl --number 5 --output o.jsonl".split()) == 1
    assert caplog.messages[-1].startswith("error: ") and "Traceback" not in caplog.text


def test_parts_may_be_stated_by_a_text_longer_than_any_file_name():
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50)}}
    assert read_parts(json.dumps(schema)).names == tuple(f"p{n}" for n in range(50))
