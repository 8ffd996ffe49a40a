"""The files of examples/ run as their page says, and agree with one another."""

import json
import re
import shlex
import threading
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import tracecal
from tracecal.answers import answers
from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.reading import Reading
from tracecal.cli.main import main
from tracecal.io import log

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
TRACED = (
    "openai_batch.jsonl openai_responses.jsonl openai_completions.jsonl llama_cpp.jsonl "
    "ollama.jsonl sglang.jsonl inspect.json"
).split()
LABELLED, NEW = EXAMPLES / "labelled.jsonl", EXAMPLES / "new.jsonl"
RATE = 0.2


def command(name):
    """The arguments of the page's command, with files in their own folder."""
    (line,) = re.findall(rf"^tracecal ({name} (?:.+\\\n)*.+)$", PAGE, re.MULTILINE)
    return [
        part.replace("examples/", f"{EXAMPLES}/") for part in shlex.split(line.replace("\\\n", ""))
    ]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """The folder in which the page's first command was run, and what it printed."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said = []
        patch.setattr("builtins.print", lambda *texts: said.extend(texts))
        assert main(command("calibrate")) == 0
    return folder, "".join(said)


@pytest.fixture(scope="module")
def calibrator(calibrated):
    return calibrated[0] / "C.json"


def scored(calibrator, name, tmp_path, *more):
    output = tmp_path / "scored.jsonl"
    arguments = ["--answers", str(EXAMPLES / name), "--calibrator", str(calibrator)]
    assert main(["score", *arguments, "--output", str(output), *more]) == 0
    return pl.read_ndjson(output)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_pieces_of_a_log_are_scored_byte_for_byte_as_the_whole(
    calibrator, tmp_path, monkeypatch, ending
):
    """However many answers are scored at a time."""

    def scores(lines):
        log, output = tmp_path / "log.jsonl", tmp_path / f"scored.{ending}"
        log.write_text("".join(lines), encoding="utf-8")
        options = ["--calibrator", str(calibrator), "--error-rate", "0.2", "--output", str(output)]
        assert main(["score", "--answers", str(log), *options]) == 0
        return output.read_text(encoding="utf-8").splitlines(True)

    lines = NEW.read_text(encoding="utf-8").splitlines(True)
    header = ending == "csv"
    whole = scores(lines)
    assert len(whole) == len(lines) + header
    monkeypatch.setattr(answers, "CHUNK", 5)
    monkeypatch.setattr(answers, "FRAME", 7)
    assert scores(lines) == whole
    parts = [scores(lines[place : place + 33])[header:] for place in range(0, len(lines), 33)]
    assert [line for part in parts for line in part] == whole[header:]


def test_an_output_is_whole_or_not_at_all(calibrator, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(answers, "CHUNK", 5)
    monkeypatch.setattr(answers, "FRAME", 7)
    log, output = tmp_path / "log.jsonl", tmp_path / "scored.jsonl"
    lines = NEW.read_text(encoding="utf-8").splitlines(True)
    log.write_text("".join([*lines, lines[0]]), encoding="utf-8")
    arguments = ["score", "--answers", str(log), "--calibrator", str(calibrator)]
    for to_file in (["--output", str(output)], []):
        assert main([*arguments, *to_file]) == 1
        assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_the_page_shows_what_is_printed(calibrated):
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown.strip() in calibrated[1]


def test_the_page_says_how_many_answers_are_kept(calibrated, monkeypatch):
    monkeypatch.chdir(calibrated[0])
    assert main(command("score")) == 0
    new = pl.read_ndjson("scored.jsonl")
    assert new["reason"].null_count() == new.height
    assert f"keeps {new['keep'].sum()} of the {new.height} new answers" in PAGE
    wrong = 1 - read_file(LABELLED).frame["correct"].mean()
    stored = json.loads(Path("C.json").read_text(encoding="utf-8"))
    certified = stored[stored["fitted_on"]["estimator"]]["risk_control"]["thresholds"]
    (own,) = [one for one in certified if one["error_rate"] == RATE]
    assert (
        f"gets {100 * wrong:.0f} of 100 such questions wrong. Keep the "
        f"{100 * own['coverage']:.0f} that it is most confident of: at most {100 * RATE:.0f} of 100 of "
        "those are wrong (90 % confidence)."
    ) in " ".join(PAGE.split())


def test_the_pages_rate_is_guaranteed_and_typed(calibrator):
    stored = json.loads(calibrator.read_text(encoding="utf-8"))
    thresholds = stored[stored["fitted_on"]["estimator"]]["risk_control"]["thresholds"]
    assert RATE in [entry["error_rate"] for entry in thresholds if entry["threshold"] is not None]
    assert float(command("score")[command("score").index("--error-rate") + 1]) == RATE


def test_names_seeds_and_order_of_the_labels_decide_nothing(tmp_path):
    """The fits, the ranking and the thresholds are the same; the task is named in the file."""
    frame = read_file(LABELLED, Reading(vocabulary=49152)).frame
    files = []
    for name, seed in (("cities", 2026), ("towns", 1), ("places", 2)):
        rows = frame.sample(fraction=1, shuffle=True, seed=seed)
        calibrator = tracecal.calibrate(rows, name, config={"seed": seed})
        files.append(calibrator.file.content() | {"fitted_on": None})
    assert files[0] == files[1] == files[2]


def test_labelled_and_new_answers_are_to_different_questions():
    asked = [
        json.loads(line)["request"]["messages"][-1]["content"]
        for path in (LABELLED, NEW)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(asked) == 400 + 94
    assert max(Counter(asked).values()) == 1
    assert read_file(LABELLED).frame["correct"].null_count() == 0
    assert read_file(NEW).frame["correct"].null_count() == 94
    assert LABELLED.stat().st_size < 1.5e6


@pytest.mark.parametrize("name", TRACED)
def test_every_form_gives_the_same_probabilities(calibrator, name, tmp_path):
    found = scored(calibrator, name, tmp_path)
    first = scored(calibrator, NEW.name, tmp_path).head(4)
    assert found.drop("keep").equals(first.drop("keep"))
    assert found.height == 4
    assert (found["lower"] < found["probability"]).all()
    assert (found["probability"] < found["upper"]).all()


def test_exact_entropies_lie_within_the_bounds(calibrator):
    listed = read_file(NEW, Reading(vocabulary=49152)).frame.head(4)
    exact = read_file(EXAMPLES / "columns.jsonl").frame
    assert exact["example_id"].equals(listed["example_id"])

    def flat(frame, name):
        return frame[name].explode().to_numpy()

    surprisal, entropy = flat(exact, "surprisal"), flat(exact, "entropy")
    assert surprisal == pytest.approx(flat(listed, "surprisal"), abs=1e-4)
    assert (flat(listed, "entropy_lower") - 1e-4 <= entropy).all()
    assert (entropy <= flat(listed, "entropy_upper") + 1e-4).all()


def test_the_page_names_every_file():
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".json", ".jsonl")]
    others = ["columns.jsonl", "grafana_dashboard.json", "samples_cities.jsonl"]
    others += [LABELLED.name, NEW.name]
    assert sorted(files) == sorted([*TRACED, *others])
    assert all(f"`{name}`" in PAGE for name in files)


def test_the_forms_tell_what_they_can():
    frames = {name: read_file(EXAMPLES / name).frame for name in TRACED}
    assert all(set(frame["stop_token"]) == {"included"} for frame in frames.values())
    assert frames["inspect.json"]["correct"].null_count() == 0
    with_ids = ("openai_batch.jsonl", "openai_completions.jsonl", "llama_cpp.jsonl", "sglang.jsonl")
    ids = [frames[name]["token_ids"].to_list() for name in with_ids]
    assert ids[1:] == ids[:-1]
    assert None not in ids[0]


def test_an_evaluation_without_probabilities_says_so_answer_by_answer(calibrator, tmp_path):
    found = scored(calibrator, "samples_cities.jsonl", tmp_path, "--id", "doc.id")
    assert set(found["reason"]) == {"no log-probabilities are given"}
    verdicts = read_file(EXAMPLES / "samples_cities.jsonl", Reading(id="doc.id")).frame
    inspected = read_file(EXAMPLES / "inspect.json").frame
    assert verdicts.select("example_id", "correct").equals(
        inspected.select("example_id", "correct")
    )


def test_a_csv_and_a_parquet_hold_the_same(calibrator, tmp_path):
    arguments = ["--answers", str(EXAMPLES / TRACED[0]), "--calibrator", str(calibrator)]
    for name in ("s.csv", "s.parquet"):
        assert main(["score", *arguments, "--output", str(tmp_path / name)]) == 0
    found = pl.read_parquet(tmp_path / "s.parquet")
    assert (
        found["probability"].to_list() == pl.read_csv(tmp_path / "s.csv")["probability"].to_list()
    )
    assert main(["score", *arguments, "--output", str(tmp_path / "s.txt")]) == 1


def test_an_error_is_one_sentence_and_status_1(tmp_path, caplog):
    path = tmp_path / "C.json"
    path.write_text(json.dumps({}), encoding="utf-8")
    arguments = ["--answers", str(EXAMPLES / TRACED[0]), "--calibrator", str(path)]
    assert main(["score", *arguments]) == 1
    assert "does not say what it was fitted on" in caplog.text
    assert "Traceback" not in caplog.text


def test_what_takes_long_says_so_every_ten_seconds(monkeypatch, caplog):
    monkeypatch.setattr(log, "EVERY", 0.001)
    with caplog.at_level("INFO"):
        tracecal.calibrate(LABELLED, task="cities")
    assert re.search(r"Reading labelled.jsonl: \d+ rows so far", caplog.text)
    assert "fitting on 400 answers" in caplog.text
    time.sleep(0.1)  # a line may be on its way
    n_lines = caplog.text.count("fitting on")
    time.sleep(0.05)
    assert caplog.text.count("fitting on") == n_lines


def test_reading_that_is_interrupted_leaves_no_thread_behind():
    """Also where its error is kept, as a notebook keeps the last one."""
    rows = [{"id": str(n), "answer": "x", "logprobs": [-0.5]} for n in range(2000)]
    threads = {*threading.enumerate()}

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        answers_in(rows, keep_rows=interrupt)
    assert error.value.__traceback__ is not None
    for thread in {*threading.enumerate()} - threads:
        thread.join(timeout=5)
    assert {*threading.enumerate()} <= threads
