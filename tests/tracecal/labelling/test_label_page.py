"""Labelling on a page, with keys, in a real browser; and the file of verdicts, whatever happens."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import httpx2 as httpx
import polars as pl
import pytest

from support.labelled_answers import answers
from support.running import REPOSITORY
from support.upstream import Background
from tests.tracecal.explorer.test_page import unpacked
from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.parts.part_answers import part_answers
from tracecal.answers.parts.parts import read_parts
from tracecal.answers.reading import Reading
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.schema import CalibratorFile
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.explorer.confidences import trace_predictors
from tracecal.explorer.page_answers import PageAnswers
from tracecal.labelling.label_page import LabelPage, ask_in_order, calibrate_command
from tracecal.labelling.verdicts import Verdict, VerdictFile

ROWS = answers(6, seed=4).with_columns(
    answer=pl.format("Answer {}.", pl.int_range(pl.len())),
    tokens=None,
    question=pl.format("Question {}?", pl.int_range(pl.len())),
    references=pl.concat_list(pl.lit("the reference")),
)
IDS = ROWS["example_id"].to_list()


@pytest.fixture
def files(tmp_path):
    ROWS.write_ndjson(tmp_path / "pick.jsonl")
    return tmp_path


@contextmanager
def served(folder, content):
    """The application of a page for `pick.jsonl`, and its address."""
    read = answers_in(folder / "pick.jsonl", keep_rows=True)
    data = PageAnswers(
        read, trace_predictors(CalibratorFile.parse(content, "made up"), "made up"), None, None
    ).page_data()
    verdicts = VerdictFile(folder / "out.jsonl", dict(zip(IDS, read.rows, strict=True)))
    then = calibrate_command(folder / "out.jsonl", "t", Reading())
    labelling = LabelPage(data, verdicts, ask_in_order(IDS), then)
    with Background(labelling.application()) as serving:
        yield f"{serving.url}/{labelling.token}/"
    verdicts.close()


def verdict_file(folder):
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["labelled"] for line in lines]


def answer_text(browser):
    return browser.ask("document.getElementById('answer').innerText")


def progress(browser):
    return browser.ask("document.getElementById('progress').textContent")


def press(browser, key, message):
    browser.press(key)
    browser.wait_for(f"document.getElementById('progress').textContent.includes({message!r})")


def test_verdicts_are_given_by_keys_and_scores_show_only_afterwards(browser, files, content):
    with served(files, content) as address:
        browser.visit(address)
        assert "0 of 6 labelled" in progress(browser)
        first = answer_text(browser)
        assert "Question 0?" in first and "Answer 0." in first and "the reference" in first
        assert "TRACE" not in first and "nats" not in first
        press(browser, "r", "1 of 6")
        assert verdict_file(files) == [{"example_id": IDS[0], "correct": True}]
        press(browser, "w", "2 of 6")
        press(browser, "u", "3 of 6")
        assert [item["correct"] for item in verdict_file(files)] == [True, False, None]
        press(browser, "z", "2 of 6")
        assert [item["correct"] for item in verdict_file(files)] == [True, False]
        browser.press("n")
        browser.ask("document.activeElement.value = 'wrong unit'")
        browser.ask("document.activeElement.dispatchEvent(new Event('input'))")
        browser.press("w")  # written into the note, not a verdict
        assert len(verdict_file(files)) == 2
        browser.press("Escape")
        press(browser, "w", "3 of 6")
        assert verdict_file(files)[2]["note"].startswith("wrong unit")
        browser.press("ArrowDown")
        seen = answer_text(browser)
        assert "Question 2?" in seen and "TRACE+" in seen and "✗ Wrong" in seen
        for number in (4, 5, 6):
            press(browser, "r", f"{number} of 6")
        assert "Done" in progress(browser)
        assert not browser.complaints
        assert all(item.startswith(address) for item in browser.requests)
    frame = read_file(files / "out.jsonl").frame
    assert frame["correct"].to_list() == [True, False, False, True, True, True]


def test_the_question_comes_first_and_the_probability_right_after_the_verdict(
    browser, files, content
):
    last = "document.getElementById('last').textContent"
    with served(files, content) as address:
        browser.visit(address)
        size = "parseFloat(getComputedStyle(document.querySelector('%s')).fontSize)"
        assert answer_text(browser).startswith("Question 0?\n\nAnswer 0.")
        beside = "document.querySelector('#answer .beside > #verdicts').children.length"
        assert browser.ask(beside) == 5, "the buttons stand beside the answer"
        assert browser.ask(f"{size % '.tokens'} > 1.2 * {size % '#answer h2'}")
        assert browser.ask(last) == "" and "Not judged yet" in answer_text(browser)
        press(browser, "r", "1 of 6")
        data = unpacked(httpx.get(address).text)["answers"]
        probability = data["probability"][DEFAULT][0]
        frame = f"✓ Correct, probability {probability:.3f} by {LABELS[DEFAULT]} · Answer 0."
        assert browser.ask(last) == f"Just judged: {frame}"
        row = "document.querySelector('.row:nth-child(2)').innerText"
        assert f"{probability:.3f}" in browser.ask(row)
        press(browser, "u", "2 of 6")
        assert "Just judged: ? Unsure" in browser.ask(last)
        signs = browser.ask(
            "[...document.querySelectorAll('.row [role=img]')].map((one) => one.textContent)"
        )
        assert signs == ["·", "?", "✓"], "not judged yet and unsure differ"
        assert "a minute" not in progress(browser)
        press(browser, "w", "3 of 6")
        assert "a minute" in progress(browser)
        assert browser.ask("document.getElementById('done').position") == pytest.approx(0.5)
        then = "document.getElementById('then')"
        assert browser.ask(f"{then}.hidden")
        press(browser, "z", "2 of 6")
        assert browser.ask(last) == ""
        for number in range(3, 7):
            press(browser, "r", f"{number} of 6")
        assert not browser.ask(f"{then}.hidden") and browser.ask(
            "document.getElementById('done').hidden"
        )
        command = shlex.split(browser.ask("document.getElementById('command').textContent"))
        assert not browser.complaints
    assert command[:2] == ["tracecal", "calibrate"]
    assert command[command.index("--answers") + 1] == str(files / "out.jsonl")
    assert command[command.index("--report") + 1] == "out.html"


def test_the_page_is_not_told_what_it_hides(files, content):
    import gzip
    from base64 import b64decode

    with served(files, content) as address:
        httpx.post(f"{address}verdict", json={"answer": 0, "correct": True})
        page = httpx.get(address).text
    packed = re.search(r'<script id="data"[^>]*>([^<]*)</script>', page).group(1)
    columns = json.loads(gzip.decompress(b64decode(packed)))["answers"]
    for values in (
        columns["surprisal"],
        columns["entropy"],
        columns["peak"],
        *columns["probability"].values(),
        *columns["score"].values(),
    ):
        assert values[1:] == [None] * 5
    assert columns["surprisal"][0] and columns["probability"]["trace_plus"][0] is not None
    assert columns["correct"] == [True] + [None] * 5


def test_nobody_else_is_answered(files, content):
    with served(files, content) as address:
        other = address.rsplit("/", 2)[0]
        assert httpx.get(f"{other}/").status_code == 404
        assert httpx.post(f"{other}/guess/verdict", json={}).status_code == 404
        for host in ("elsewhere.example", "[", "a@127.0.0.1", "\xff"):
            headers = {"Host": host.encode("latin-1")}
            assert httpx.get(address, headers=headers).status_code == 403
        for wrong in (
            b'{"answer": "x"}',
            b'{"answer": 0, "correct": "yes"}',
            b'{"answer": 0, "correct": 1}',
            b'{"answer": "0", "correct": true}',
            b"[" * 100_000,
            b"\xff",
            b'{"answer": 0, "correct": true, "correct": false}',
        ):
            for kind in ("application/json", "application/json; charset=unheard-of"):
                headers = {"Content-Type": kind}
                reply = httpx.post(f"{address}verdict", content=wrong, headers=headers)
                assert reply.status_code == 400
        assert verdict_file(files) == []
        assert (
            httpx.post(f"{address}verdict", json={"answer": 3, "correct": True}).status_code == 409
        )
        assert "frame-ancestors 'none'" in httpx.get(address).headers["content-security-policy"]
    assert verdict_file(files) == []


def test_a_full_disk_stores_nothing_and_says_so(files, content, monkeypatch):
    with served(files, content) as address:
        httpx.post(f"{address}verdict", json={"answer": 0, "correct": True})
        whole = (files / "out.jsonl").read_bytes()

        def full(_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("tracecal.labelling.verdicts.os.fsync", full)
            reply = httpx.post(f"{address}verdict", json={"answer": 1, "correct": True})
        assert reply.status_code == 507
        assert "No space left" in reply.text and "not stored" in reply.text
        assert (files / "out.jsonl").read_bytes() == whole
        again = httpx.post(f"{address}verdict", json={"answer": 1, "correct": False})
        assert again.status_code == 200
    assert [item["correct"] for item in verdict_file(files)] == [True, False]


@contextmanager
def started(folder, *options):
    """The address of `tracecal label` of `pick.jsonl`, which is killed in the end."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    program = [sys.executable, "-m", "tracecal.cli.main", "label", "pick.jsonl", *options]
    log = folder / "log"
    with log.open("w") as options:
        process = subprocess.Popen(program, cwd=folder, env=environment, stderr=options)
    try:
        while not (address_match := re.search(r"http://127\S+", log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield address_match[0]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_a_kill_loses_nothing_and_a_new_start_goes_on(files):
    output = files / "pick.labelled.jsonl"
    for start in range(2):
        with started(files) as address:
            verdict = {"answer": start, "correct": bool(start)}
            assert httpx.post(f"{address}verdict", json=verdict).status_code == 200
        if not start:
            with output.open("a") as file:
                row = json.loads((files / "pick.jsonl").read_text().splitlines()[1])
                file.write(json.dumps(row, ensure_ascii=False)[:60])  # cut by the kill
    assert read_file(output).frame["correct"].to_list() == [False, True]


def write_records(folder, pieces, surprisals=(0.25,)):
    """Answers as tokens, in `pick.jsonl`."""
    answered = [
        {
            "id": f"q{number}",
            "prompt": f"Question {number}?",
            "answer": "".join(tokens),
            "tokens": tokens,
            "surprisal": [surprisal] * len(tokens),
            "entropy": [0.5] * len(tokens),
            "correct": {"currency": True},  # said by someone else
        }
        for number, (tokens, surprisal) in enumerate(zip(pieces, cycle(surprisals), strict=False))
    ]
    (folder / "pick.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answered))


def test_parts_are_judged_by_themselves_with_keys(browser, tmp_path):
    pieces = (["Capital:", " Lima", "\nCurrency:", " Sol"], ["Currency:", " Real"], ["no", " idea"])
    write_records(tmp_path, pieces)
    options = ["--parts", "lines: [capital, currency]", "--output", "out.jsonl"]
    with started(tmp_path, *options) as address:
        browser.visit(address)
        assert "0 of 3 labelled" in progress(browser)
        outlined = "document.querySelector('#answer .tokens .part').textContent"
        assert "Question 0?" in answer_text(browser) and "nats" not in answer_text(browser)
        assert browser.ask(outlined) == " Lima"
        press(browser, "r", "1 of 3")
        assert verdict_file(tmp_path) == [
            {"example_id": "q0/capital", "correct": True, "part": "capital"}
        ]
        assert browser.ask(outlined) == " Sol"
        press(browser, "w", "2 of 3")
        assert [item["correct"] for item in verdict_file(tmp_path)] == [True, False]
        assert "Question 1?" in answer_text(browser) and browser.ask(outlined) == " Real"
        browser.press("ArrowDown")
        assert "✗ Wrong" in answer_text(browser) and "Capital: Lima" in answer_text(
            browser
        ).replace("\n", "")
        assert not browser.complaints
        page = unpacked(httpx.get(address).text)
        # The shades of an answer are sent when all of its parts have a verdict.
        assert [item is None for item in page["parents"]["surprisal"]] == [False, True]
    with started(tmp_path, *options) as address:
        browser.visit(address)
        press(browser, "u", "3 of 3")
    answers = read_file(tmp_path / "out.jsonl")
    assert answers.frame["example_id"].to_list() == ["q0", "q1"]
    stated = read_parts("lines: [capital, currency]")
    parts, _ = part_answers(answers.frame, stated, answers.part_labels)
    assert parts.select("example_id", "correct").rows() == [
        ("q0/capital", True),
        ("q0/currency", False),
        ("q1/currency", False),  # unsure counts as wrong
    ]


def test_of_parts_those_are_asked_for_that_a_promise_needs(browser, tmp_path):
    """Half of the answers are sure and right, the others neither."""
    pieces = [["Capital:", f" City{n}", "\nCurrency:", f" Coin{n}"] for n in range(40)]
    write_records(tmp_path, pieces, [0.01, 3.0])
    options = ["--parts", "lines: [capital, currency]", "--output", "out.jsonl"]
    with started(tmp_path, *options, "--error-rate", "0.2", "--estimator", "min_prob") as address:
        browser.visit(address)
        labelled = 0
        while not re.search("no threshold is left|too many are wrong", progress(browser)):
            assert "now tested" in progress(browser)
            asked = re.search(r"Question (\d+)\?", answer_text(browser))[1]
            labelled += 1
            press(browser, "w" if int(asked) % 2 else "r", f"{labelled} labelled")
        options = progress(browser)
    kept = float(re.search(r"at most 20 % are wrong among the ([\d.]+) %", options)[1])
    assert kept == pytest.approx(50, abs=10)
    named = [item["example_id"] for item in verdict_file(tmp_path)]
    assert len(named) == len({*named}) == labelled < 80
    assert {name.partition("/")[2] for name in named} == {"capital", "currency"}


def test_an_export_of_parts_becomes_a_file_of_verdicts(tmp_path, monkeypatch):
    write_records(tmp_path, [["Capital:", " Lima", "\nCurrency:", " Sol"]])
    monkeypatch.chdir(tmp_path)
    message = {"q0/currency": "wrong", "q0/capital": "right"}
    export = [
        {"id": part, "responses": {"verdict": [{"value": value, "user_id": "u"}]}}
        for part, value in message.items()
    ]
    Path("export.json").write_text(json.dumps(export))
    options = ["--parts", "lines: [capital, currency]", "--output", "out.jsonl"]
    assert main(["label", "pick.jsonl", "--labels", "export.json", *options]) == 0
    answers, stated = read_file("out.jsonl"), read_parts("lines: [capital, currency]")
    parts, _ = part_answers(answers.frame, stated, answers.part_labels)
    assert dict(parts.select("example_id", "correct").rows()) == {
        "q0/currency": False,
        "q0/capital": True,
    }


@pytest.fixture
def verdicts(tmp_path):
    rows = {name: {"id": name, "answer": "x", "correct": True} for name in ("a", "b", "c")}
    verdict_file = VerdictFile(tmp_path / "out.jsonl", rows)
    yield verdict_file, rows, tmp_path / "out.jsonl"
    verdict_file.close()


def test_a_verdict_counts_whatever_else_a_row_says(verdicts):
    verdict_file, _, path = verdicts
    verdict_file.append("b", Verdict(False))
    verdict_file.append("a", Verdict(None, "which one?"))
    assert read_file(path).frame["correct"].to_list() == [False, False]
    assert verdict_file.undo() == "a"
    assert verdict_file.undo() == "b"
    assert verdict_file.undo() is None
    assert path.read_bytes() == b""


def replace(path):
    path.with_name("other").write_bytes(path.read_bytes())
    path.with_name("other").rename(path)


def rewrite(path):
    path.write_text(path.read_text().replace("true", "TRUE"))


CHANGES = {
    "deleted": lambda path: path.unlink(),
    "replaced": replace,
    "added": lambda path: path.write_bytes(path.read_bytes() + b"a line of another hand\n"),
    "emptied": lambda path: path.write_bytes(b""),
    "rewritten": rewrite,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_another_program_changed_is_not_written_or_cut(files, content, change):
    path = files / "out.jsonl"
    with served(files, content) as address:
        assert httpx.post(f"{address}verdict", json={"answer": 0, "correct": True}).is_success
        change(path)
        left = path.read_bytes() if path.exists() else None
        for reply in (
            httpx.post(f"{address}verdict", json={"answer": 1, "correct": True}),
            httpx.post(f"{address}undo"),
        ):
            assert reply.status_code == 507
            assert "by another program; end 'tracecal label' and start it again" in reply.text
    assert (path.read_bytes() if path.exists() else None) == left


def test_two_at_once_are_refused(verdicts):
    _, rows, path = verdicts
    with pytest.raises(InputError, match="in use by another"):
        VerdictFile(path, rows)


GOOD = '{"id": "a", "labelled": {"example_id": "a", "correct": true}}\n'


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"labelled": {"example_id": "z", "correct": true}}\n', "not among the answers"),
        ('{"answer": 3}\n', "line 1 is not a verdict"),
        ("nonsense\n", "line 1 is not a verdict"),
        (GOOD.replace("true", '"false"'), "line 1 is not a verdict"),
        (GOOD.replace("true", 'true, "note": 5'), "line 1 is not a verdict"),
        (GOOD.replace('e_id": "a"', 'e_id": []'), "line 1 is not a verdict"),
        ('{"labelled": {"example_id": "a", "correct": true}}\n' * 2, "line 2: a second verdict"),
        ("one line of someone", "line 1 is not a whole verdict"),
        ('{"id": "a", "labelled": {"exa', "line 1 is not a whole verdict"),  # behind no verdict
        ("lines\rof\ran old\rprogram\r", "line 1 is not a whole verdict"),
        (GOOD + "one line of someone", "line 2 is not a whole verdict"),
        (GOOD + '{"id": "z", "labelled": {"exa', "line 2 is not a whole verdict"),
    ],
)
def test_another_file_is_not_written_into(tmp_path, line, message):
    path = tmp_path / "out.jsonl"
    path.write_bytes(line.encode())
    with pytest.raises(InputError, match=message):
        VerdictFile(path, {"a": {"id": "a"}})
    assert path.read_bytes() == line.encode()


@pytest.mark.parametrize("output", ["pipe", "/dev/zero", "/dev/null"])
def test_a_device_takes_no_verdicts(tmp_path, output):
    path = tmp_path / output
    if output == "pipe":
        os.mkfifo(path)
    with pytest.raises(InputError, match="is not a file"):
        VerdictFile(path, {"a": {"id": "a"}})


def test_labels_go_straight_into_calibrate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = answers(80)
    frame.with_columns(correct=None).write_ndjson("pick.jsonl")
    rows = answers_in("pick.jsonl", keep_rows=True)
    ids = rows.frame["example_id"].to_list()
    verdict_file = VerdictFile("labelled.jsonl", dict(zip(ids, rows.rows, strict=True)))
    for example, correct in zip(ids, frame["correct"], strict=True):
        verdict_file.append(example, Verdict(correct))
    verdict_file.close()
    Path("quick.yaml").write_text("splits: {count: 1}\nbootstrap: {resamples: 20}\n")
    options = ["--answers", "labelled.jsonl", "--task", "t", "--output", "C.json"]
    assert main(["calibrate", *options, "--config", "quick.yaml"]) == 0
    stored = json.loads(Path("C.json").read_text())
    assert stored["fitted_on"]["n"] == 80
    assert stored["fitted_on"]["base_rate"] == pytest.approx(frame["correct"].mean())


def test_an_export_becomes_a_file_of_verdicts(files, monkeypatch, caplog):
    monkeypatch.chdir(files)
    message = {IDS[3]: "wrong", IDS[1]: "right", "other": "right"}
    export = [
        {"id": example, "responses": {"verdict": [{"value": value, "user_id": "u"}]}}
        for example, value in message.items()
    ]
    Path("export.json").write_text(json.dumps(export))
    command = ["label", "pick.jsonl", "--labels", "export.json", "--output", "out.jsonl"]
    assert main(command) == 0
    frame = read_file("out.jsonl").frame
    assert dict(frame.select("example_id", "correct").rows()) == {IDS[1]: True, IDS[3]: False}
    assert "1 verdict(s) are on other answers" in caplog.text
    assert main(command) == 0  # again: nothing is new
    export[0]["responses"]["verdict"][0]["value"] = "right"
    Path("export.json").write_text(json.dumps(export))
    before = Path("out.jsonl").read_bytes()
    assert main(command) == 1
    assert "another verdict on 'a0003'" in caplog.text
    assert Path("out.jsonl").read_bytes() == before


def test_a_verdict_that_does_not_fit_on_the_disk_is_said_with_its_file(files):
    rows = [{"example_id": example_id, "correct": True} for example_id in IDS]
    (files / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    label = f"{sys.executable} -m tracecal.cli.main label pick.jsonl --labels labels.jsonl"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; {label} --output out.jsonl"],  # kilobytes
        cwd=files,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "error: out.jsonl: only a part of the line could be written" in done.stderr
    whole = (files / "out.jsonl").read_text(encoding="utf-8")
    assert whole == "" or whole.endswith("\n")
