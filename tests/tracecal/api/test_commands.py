"""The functions of `import tracecal` give what the commands of the same names write and print.

A command parses its options, calls one of them, and prints or writes what it gives.
"""

import inspect
import json
import re
from pathlib import Path

import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers
from support.log_rows import write
from support.running import REPOSITORY
from tracecal.calibrator.schema import CalibratorFile
from tracecal.calibrator.scoring import with_digits
from tracecal.cli.api_source import NOT_OPTIONS, api_parameters, read_docstring
from tracecal.cli.main import COMMANDS, main

CALIBRATE = ["calibrate", "--answers", "labelled.jsonl", "--task", "t", "--output", "C.json"]


@pytest.fixture
def files(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    answers(120).write_ndjson("labelled.jsonl")
    answers(40, seed=1).with_columns(correct=None).write_ndjson("new.jsonl")
    answers(10, seed=2, entropy=None).write_ndjson("without.jsonl")
    known = content | {"fitted_on": content["fitted_on"] | {"vocabulary": 100_000}}
    CalibratorFile.parse(known, "C.json").write("C.json")
    return tmp_path


def rows(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]


def test_calibrate(files, capsys):
    (files / "config.yaml").write_text("splits: {count: 2}\nrisk_control: {error_rates: [0.3]}\n")
    given = ["--config", "config.yaml", "--vocabulary", "100000", "--report", "page.html"]
    assert main([*CALIBRATE, *given]) == 0
    printed = capsys.readouterr().out
    reading = tracecal.Reading(vocabulary=100_000)
    config = {"splits": {"count": 2}, "risk_control": {"error_rates": [0.3]}}
    calibrator = tracecal.calibrate("labelled.jsonl", "t", config=config, reading=reading)
    calibrator.save("own.json")
    assert Path("own.json").read_bytes() == Path("C.json").read_bytes()
    report = calibrator.report()
    told, _, typed = printed.partition("\nNext:")
    typing = "labelled.jsonl", "C.json", reading, "page.answers.html"
    lines = f"{report.with_commands(*typing)}".partition("\nNext:")[0].splitlines()
    assert [line for line in told.splitlines() if line] == [line for line in lines if line]
    assert "tracecal " in typed
    report.save("own.html")
    pages = [Path(name).read_text(encoding="utf-8") for name in ("own.html", "page.html")]
    believed = (page.split("<h2>Can I believe it?")[1] for page in pages)
    own, its = (re.split("<h2>|</body>", section)[0].strip() for section in believed)
    assert own == its and "What next?" not in pages[0]
    assert 'href="page.answers.html"' in pages[1] and "answers.html" not in pages[0]
    loaded = tracecal.Calibrator.load("C.json")
    assert loaded.report(answers(120), config="config.yaml").text == report.text
    with pytest.raises(tracecal.InputError, match="needs the labelled answers"):
        loaded.report()
    with pytest.raises(tracecal.InputError, match="was not fitted on these labelled answers"):
        loaded.report(answers(120, seed=5), config="config.yaml")


def test_score(files, caplog):
    calibrator = tracecal.Calibrator.load("C.json")
    for source, options in (
        ("new.jsonl", {"error_rate": 0.3}),
        ("new.jsonl", {"estimator": "min_prob"}),
        ("without.jsonl", {}),
        ("labelled.jsonl", {"error_rate": 0.3}),
    ):
        given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        command = ["score", "--answers", source, "--calibrator", "C.json", "--output", "s.parquet"]
        caplog.clear()
        assert main([*command, *given]) == 0
        of_command = "Answers to keep are ranked by", "answers are kept;", "that is more than"
        told = [one for one in caplog.messages if not any(map(one.__contains__, of_command))]
        caplog.clear()
        scored = calibrator.score(source, **options)
        assert caplog.messages == told
        assert with_digits(scored).equals(pl.read_parquet("s.parquet")), source
        assert calibrator.score(pl.read_ndjson(source), **options).equals(scored)


def test_card(files, capsys):
    assert main([*CALIBRATE]) == 0
    capsys.readouterr()
    assert main(["card", "C.json", "--output", "card.html"]) == 0
    card = tracecal.Calibrator.load("C.json").card()
    assert capsys.readouterr().out == f"{card}\n"
    card.save("own.html")
    assert Path("own.html").read_bytes() == Path("card.html").read_bytes()


def test_estimators_of_ones_own(files):
    """Given as a file, as the commands take it, or as what it holds."""
    (files / "own.py").write_text(
        "import polars as pl\n"
        'ESTIMATORS = {"calm": {"label": "Calm", "score": -pl.col("entropy").list.mean()}}\n'
    )
    given = {"calm": {"label": "Calm", "score": -pl.col("entropy").list.mean()}}
    own = ["--estimators", "own.py"]
    assert main([*CALIBRATE, "--vocabulary", "100000", *own]) == 0
    for estimators in (given, "own.py", files / "own.py"):
        calibrator = tracecal.calibrate(
            "labelled.jsonl",
            "t",
            estimators=estimators,
            reading=tracecal.Reading(vocabulary=100_000),
        )
        calibrator.save("own.json")
        assert Path("own.json").read_bytes() == Path("C.json").read_bytes()
    assert "calm" in calibrator.report().estimators["estimator"]
    loaded = tracecal.Calibrator.load("C.json", estimators=given)
    assert loaded.report(answers(120)).text == calibrator.report().text
    command = ["score", "--answers", "new.jsonl", "--calibrator", "C.json", "--estimator", "calm"]
    assert main([*command, *own, "--output", "s.parquet"]) == 0
    scored = loaded.score("new.jsonl", estimator="calm")
    assert with_digits(scored).equals(pl.read_parquet("s.parquet"))
    with pytest.raises(tracecal.InputError, match="name it with estimators"):
        tracecal.Calibrator.load("C.json").score("new.jsonl", estimator="calm")
    for wrong, told in (
        ({"min_prob": given["calm"]}, "estimators: 'min_prob' is the id of a built-in estimator"),
        ({"two words": given["calm"]}, "estimators: 'two words' is not a valid name"),
        ({"calm": {"score": 1}}, "estimators: calm"),
    ):
        with pytest.raises(tracecal.InputError, match=told):
            tracecal.calibrate("labelled.jsonl", "t", estimators=wrong)


def test_score_of_one_response_is_that_of_its_file(files):
    calibrator = tracecal.Calibrator.load("C.json")
    for path in ("new.jsonl", "without.jsonl"):
        scored = calibrator.score(path, error_rate=0.3)
        for row, expected in zip(rows(path), scored.iter_rows(named=True), strict=True):
            found = calibrator.score_response(row, error_rate=0.3)
            assert found.probability == pytest.approx(expected["probability"], abs=1e-12)
            assert found.keep == expected["keep"] or found.reason


def parted(n):
    """Answers of one digit in JSON, labelled by part."""
    for place, row in enumerate(answers(n).iter_rows(named=True)):
        s, h = row["surprisal"][0], row["entropy"][0]
        tokens = ['{"x": ', str(place % 10), "}"]
        yield {
            "id": row["example_id"],
            "answer": "".join(tokens),
            "tokens": tokens,
            "surprisal": [0.0, s, 0.0],
            "entropy": [0.0, h, 0.0],
            "correct": {"x": row["correct"]},
            "model": "m",
            "stop_token": "absent",
            "processed": "no",
        }


def test_parts(files):
    write(files / "parts.jsonl", parted(60))
    given = ["--answers", "parts.jsonl", "--task", "t", "--parts", "json: [x]"]
    assert main(["calibrate", *given, "--output", "P.json"]) == 0
    read = tracecal.read_answers("parts.jsonl")
    calibrator = tracecal.calibrate(read, "t", parts={"json": ["x"]})
    calibrator.save("own.json")
    assert Path("own.json").read_bytes() == Path("P.json").read_bytes()
    command = ["score", "--answers", "parts.jsonl", "--calibrator", "P.json"]
    assert main([*command, "--output", "s.parquet"]) == 0
    scored = calibrator.score(read)
    assert with_digits(scored).equals(pl.read_parquet("s.parquet"))
    row = {name: value for name, value in next(parted(1)).items() if name != "correct"}
    found = calibrator.score_response_parts(row)["x"].probability
    assert found == pytest.approx(scored["parts"][0][0]["probability"], abs=1e-12)
    with pytest.raises(tracecal.InputError, match="on parts of answers"):
        calibrator.score_response(row)


def test_pick(files):
    command = ["pick", "--answers", "labelled.jsonl", "--number", "30", "--output", "pick.jsonl"]
    assert main(command) == 0
    drawn = tracecal.pick("labelled.jsonl", 30, output="own.jsonl")
    assert drawn.equals(tracecal.read_answers("pick.jsonl"))
    assert Path("own.jsonl").read_bytes() == Path("pick.jsonl").read_bytes()


@pytest.mark.parametrize("calibrator", [None, "C.json"])
def test_label_where_labels_decide(files, calibrator):
    with_calibrator = [f"--calibrator={calibrator}"] if calibrator else []
    given = ["label", "labelled.jsonl", "--error-rate", "0.3", *with_calibrator]
    labels = answers(120).select(id="example_id", correct="correct")
    labels.write_ndjson("verdicts.jsonl")
    verdicts = write(
        files / "verdicts.jsonl",
        [
            {"labelled": {"example_id": row["id"], "correct": row["correct"]}}
            for row in labels.iter_rows(named=True)
        ],
    )
    assert main([*given, "--labels", str(verdicts), "--output", "out.jsonl"]) == 0
    record = json.loads(Path("out.promise.json").read_text(encoding="utf-8"))
    options = {"calibrator": calibrator, "record_file": "own.promise.json"}
    search = tracecal.LabelSearch("labelled.jsonl", 0.3, **options)
    truth = dict(labels.iter_rows())
    asked = {}
    while (state := search.state(asked))["next"] is not None:
        asked[state["next"]] = truth[state["next"]]
    assert state == record
    assert Path("own.promise.json").read_bytes() == Path("out.promise.json").read_bytes()
    alone = tracecal.LabelSearch("labelled.jsonl", 0.3, calibrator=calibrator).state(truth)
    assert record == alone | {name: record[name] for name in ("tried", "joint_confidence")}


def test_agree(files, capsys):
    answers(120).with_columns(correct=pl.int_range(pl.len()) % 3 > 0).write_ndjson("other.jsonl")
    assert main(["agree", "labelled.jsonl", "other.jsonl"]) == 0
    assert capsys.readouterr().out == f"{tracecal.agree('labelled.jsonl', 'other.jsonl')}\n"


def test_plan(files, capsys):
    assert main([*CALIBRATE]) == 0
    capsys.readouterr()
    numbers = ["--error-rate", "0.3", "--most", "100", "--draws", "5"]
    calibrator = tracecal.Calibrator.load("C.json")
    for given, options in (
        (["--calibrator", "C.json"], {"calibrator": calibrator}),
        (["--accuracy", "0.8", "--auroc", "0.7"], {"accuracy": 0.8, "auroc": 0.7}),
    ):
        assert main(["plan", *numbers, *given, "--picture", "plan.svg"]) == 0
        plan = tracecal.plan(0.3, most=100, draws=5, **options)
        assert capsys.readouterr().out == f"{plan}\n"
        assert Path("plan.svg").read_text(encoding="utf-8") == plan.picture()


def test_explore(files):
    given = ["--answers", "labelled.jsonl", "--calibrator", "C.json"]
    assert main(["explore", *given, "--output", "page.html", "--number", "20"]) == 0
    tracecal.explore("labelled.jsonl", "own.html", calibrator="C.json", number=20)
    assert Path("own.html").read_bytes() == Path("page.html").read_bytes()


def test_watch(files, capsys, caplog):
    labels = write(files / "labels.jsonl", [{"id": "a0001", "correct": True}])
    given = ["--answers", "new.jsonl", "--calibrator", "C.json", "--error-rate", "0.3"]
    assert main(["watch", *given, "--state", "state.db", "--labels", str(labels)]) == 0
    printed, told = capsys.readouterr().out, caplog.messages
    caplog.clear()
    with tracecal.Monitors("C.json", "own.db", error_rate=0.3) as monitors:
        assert monitors.watch("new.jsonl").new == 40
        assert monitors.judge(labels).new == 1
        summary = monitors.summary()
        assert caplog.messages == told
        assert monitors.watch("new.jsonl").repeated == 40
        assert monitors.alarms == []
    # Ties between values are broken at random, by another seed in each state.
    plain = [line.split(" evidence ")[0] for line in summary.split("\n")]
    assert plain == [line.split(" evidence ")[0] for line in printed.rstrip("\n").split("\n")]
    with pytest.raises(tracecal.InputError, match="watches another calibrator, or with other"):
        tracecal.Monitors("C.json", "own.db")


def test_check(files, capsys, caplog):
    new = answers(100, seed=1)
    new.drop("correct").write_ndjson("new.jsonl")
    new.select("example_id", "correct").head(9).write_csv("labels.csv")
    given = ["--answers", "new.jsonl", "--labels", "labels.csv", "--calibrator", "C.json"]
    with pytest.raises(SystemExit) as status:
        main(["check", *given, "--error-rate", "0.3", "--output", "its.json"])
    printed, told = capsys.readouterr().out, caplog.messages
    caplog.clear()
    reading = tracecal.Reading(labels="labels.csv")
    result = tracecal.check("new.jsonl", "C.json", 0.3, reading=reading)
    assert caplog.messages == told
    assert printed == f"{result}\n" and status.value.code == result.exit_code == 4
    result.save("own.json")
    assert Path("own.json").read_bytes() == Path("its.json").read_bytes()
    labelled = new.with_columns(correct=pl.when(pl.int_range(pl.len()) < 9).then("correct"))
    assert tracecal.check(labelled, "C.json", 0.3) == result


# Commands without a function of the API: a page and a proxy that are served, and help.
ALONE = {"label", "serve", "reading"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - ALONE))
def test_each_command_has_a_test_here(name):
    """It compares what the command writes and prints with what the API gives."""
    modules = (REPOSITORY / "tests/tracecal/capture/test_replay.py", Path(__file__))
    assert any(f"def test_{name}" in module.read_text(encoding="utf-8") for module in modules)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"reading"}))
def test_every_option_has_a_text_and_those_of_the_api_have_its(name):
    """An option's text stands once, in a docstring or a model's field."""
    command = COMMANDS[name]
    described = {p.name: p.text for p in command.parameters() if p.model is None}
    assert all(described.values()), [name for name, text in described.items() if not text]
    if command.options_of:
        own = read_docstring(command.function).parameters
        of_api = {p.name: p.text for p in api_parameters(command.options_of)}
        shown = {option.name: option.help for option in command.build().params}
        for option in of_api.keys() & shown.keys() - own.keys():
            assert shown[option].replace("\\[", "[") == of_api[option]


@pytest.mark.parametrize("name", sorted({c.options_of for c in COMMANDS.values()} - {""}))
def test_parameters_read_from_the_source_are_those_of_the_function(name):
    """Help is made without importing the function: this keeps both the same."""
    first, *members = name.split(".")
    documented = getattr(tracecal, first)
    for member in members:
        documented = getattr(documented, member)
    parameters = inspect.signature(documented).parameters
    texts = read_docstring(inspect.getdoc(documented)).parameters
    source = {parameter.name: parameter for parameter in api_parameters(name)}
    assert source.keys() == parameters.keys() - NOT_OPTIONS
    for parameter in source.values():
        assert parameter.default == parameters[parameter.name].default
        assert parameter.text == texts.get(parameter.name, "")
