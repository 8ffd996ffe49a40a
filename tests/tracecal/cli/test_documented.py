"""What README.md and docs say one can write runs as it stands."""

import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

import tracecal
from support import invoices
from support.log_rows import write
from support.tiny import initialise_model, train_tokenizer
from tracecal.capture.capture import capture
from tracecal.cli.main import main
from tracecal.statistics.percentages import percent

ROOT = Path(__file__).resolve().parents[3]
CALIBRATE, SCORE = r"tracecal (calibrate --answers labelled.+)", r"tracecal (score --answers new.+)"
TUTORIAL = "docs/tutorials/own_answers.md"


def commands(page, pattern):
    return re.findall(rf"^ *{pattern}$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)


def programs():
    """The pieces of Python in docs/guides/python.md."""
    text = (ROOT / "docs/guides/python.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.+?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A folder with labelled answers and new ones, under the names that the pages use."""
    shutil.copy(ROOT / "examples/labelled.jsonl", tmp_path / "labelled.jsonl")
    shutil.copy(ROOT / "examples/new.jsonl", tmp_path / "new.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_runs_and_says_what_comes_out(tmp_path, monkeypatch, capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    typed = re.findall(r"^tracecal ((?:.+\\\n)*.+)$", readme, re.MULTILINE)
    assert [one.split()[0] for one in typed] == ["calibrate", "score"]
    for one in typed:
        assert main(shlex.split(one.replace("\\\n", " "))) == 0
    told = capsys.readouterr().out
    assert re.findall(r"^```text\n(.+?)^```", readme, re.MULTILINE | re.DOTALL) == [told]
    (program,) = re.findall(r"^```python\n(.+?)^```", readme, re.MULTILINE | re.DOTALL)
    exec(program, {})
    (kept,) = re.findall(r"  # (\d+ of 94 answers are kept)$", program, re.MULTILINE)
    assert capsys.readouterr().out == f"{kept}\n"
    labelled, wrong = re.search(r"(\d+) answers by .*; all labelled, (\d+) % wrong", told).groups()
    coverage = re.search(r"Keep about (\d+) % of answers like these: at most 20 %", told)[1]
    flowing = " ".join(readme.split())
    assert f"wrong in {wrong} % of {labelled} labelled answers" in flowing
    assert f"keeps the most confident {coverage} %" in flowing
    scored = pl.read_ndjson("scored.jsonl").filter(pl.col("keep"))
    n_wrong = len(scored) - sum(map(new_answers_right().get, scored["example_id"]))
    share = percent(n_wrong / len(scored))
    assert f"It keeps {len(scored)}, of which {n_wrong} are wrong ({share})" in flowing


def new_answers_right():
    """Whether each new answer names its country, by the references in `demo/`."""
    rows = [*read_lines(ROOT / "demo/rows/cities/evaluation.jsonl")]
    references = {row["question"]: row["references"] for row in rows}
    right = {}
    for row in read_lines(ROOT / "examples/new.jsonl"):
        answer = row["response"]["choices"][0]["message"]["content"].casefold()
        names = references[row["request"]["messages"][-1]["content"]]
        right[row["id"]] = any(name.casefold() in answer for name in names)
    return right


def read_lines(path):
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", [TUTORIAL])
def test_answers_are_kept_where_they_can_be_relied_on(answered, page):
    """Where a rate is not promised `keep` is null, and no error."""
    (calibrate,), (score,) = commands(page, CALIBRATE), commands(page, SCORE)
    assert main(shlex.split(calibrate)) == 0
    more = [] if "--output" in score else ["--output", "scored.jsonl"]
    assert main([*shlex.split(score), *more]) == 0
    scored = pl.read_ndjson("scored.jsonl")
    assert scored.height == 94
    assert scored["probability"].is_between(0, 1).all()
    assert set(scored["keep"]) <= {True, False, None}


def test_programs_score_answers(answered, capsys):
    names = {}
    calibrating, responding, formula, generating, fitting = programs()
    exec(calibrating.replace("151936", "1500"), names)
    token = {"token": "51", "logprob": -0.2, "top_logprobs": [{"token": "51", "logprob": -0.2}]}
    choice = {"message": {"content": "51"}, "logprobs": {"content": [token]}, "stop_reason": 0}
    names |= {"response": {"choices": [choice]}, "request": {"temperature": 1}}
    exec(responding, names)
    exec(formula, names)
    tokenizer = train_tokenizer()
    inputs = tokenizer("What is 1 + 1?", return_tensors="pt", return_token_type_ids=False)
    names |= {"model": initialise_model(len(tokenizer), "llama", 0), "inputs": inputs}
    exec(generating, names)
    logits, tokens = (torch.stack(names["output"].logits, 1)[0], names["output"].sequences[0])
    _, *expected = capture(logits, tokens[-len(logits) :])
    for name, values in zip(("surprisal", "entropy"), expected, strict=True):
        assert names[name].tolist() == pytest.approx(values.tolist(), abs=1e-5)
    assert "Confidence(probability" in capsys.readouterr().out
    exec(fitting, names)
    assert names["fitted"].predict([([0.1, 0.2], [0.3, 0.1])]).tolist() == [True]


def test_the_fields_of_an_extraction_are_scored(tmp_path, monkeypatch):
    """With a stub of the client; tests/evaluators runs the page with the real one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "openai", invoices)
    doubted = invoices.fields_to_check(tmp_path)
    assert {*doubted} == {"number", "total"}
    assert all(0 < probability < 0.5 for _, probability, _ in doubted.values())
    assert {reason for _, _, reason in doubted.values()} == {None}


def test_agreeing_samples_are_calibrated(tmp_path, monkeypatch, capsys):
    """By the page's function and commands."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/guides/without_logprobs.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    (typed,) = re.findall(r"^```sh\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    names = {}
    exec(program, names)
    draws = random.Random(1)
    for path, n in (("labelled.jsonl", 120), ("new.jsonl", 30)):
        rows = []
        for number in range(n):
            sure = draws.choice([0.4, 0.98])
            samples = ["Lima" if draws.random() < sure else f"City {k}" for k in range(5)]
            row = names["row"](f"{path}-{number}", f"Capital {number} of {path}?", samples)
            assert 0 < row["probability"] <= 1
            rows.append(row | ({"correct": row["answer"] == "Lima"} if n == 120 else {}))
        write(tmp_path / path, rows)
    for command in typed.replace("\\\n", "").splitlines():
        assert main(shlex.split(command)[1:]) == 0
    assert "at most 20 % of those kept are wrong" in capsys.readouterr().out
    scored = pl.read_ndjson("scored.jsonl")
    assert set(scored["keep"]) == {True, False}


def test_the_rest_is_sent_to_a_larger_model(answered):
    """By the guide's commands, of which the large model answers between the first and the last."""
    page = (ROOT / "docs/guides/targets.md").read_text(encoding="utf-8")
    section = page.split("## Send the rest to a larger model")[1].split("\n## ")[0]
    sending, calibrating = re.findall(r"^```sh\n(.+?)^```", section, re.MULTILINE | re.DOTALL)
    (calibrate,) = commands("docs/guides/calibrate.md", r"tracecal (calibrate (?:.+\\\n)+.+R.html)")
    assert main(shlex.split(calibrate.replace("\\\n", " "))) == 0
    score, grep = sending.replace("\\\n", " ").splitlines()
    assert main(shlex.split(score.replace("0.1", "0.2"))[1:]) == 0
    subprocess.run(grep, shell=True, check=True)
    scored, rest = ([*read_lines(answered / name)] for name in ("scored.jsonl", "rest.jsonl"))
    assert 0 < len(rest) < len(scored) == 94
    assert [row["id"] for row in rest] == [
        row["id"] for row in scored if row["confidence"]["keep"] is not True
    ]
    assert all(row["request"]["messages"] for row in rest)
    text = (answered / "labelled.jsonl").read_text(encoding="utf-8")
    text = re.sub(r'"model":"[^"]+"', '"model":"large"', text)
    (answered / "large.jsonl").write_text(text, encoding="utf-8")
    assert main(shlex.split(calibrating.replace("\\\n", " "))[1:]) == 0
    assert tracecal.Calibrator.load("L.json").fitted_on.model == "large"


def test_the_tutorials_example_says_what_it_quotes(answered, capsys):
    (calibrate,) = commands(TUTORIAL, r"tracecal (calibrate --answers examples(?:.+\\\n)*.+)")
    typed = calibrate.replace("examples/", "").replace("\\\n", "")
    assert main(shlex.split(typed)) == 0
    told = capsys.readouterr().out
    (quoted,) = re.findall(
        r"^```text\n(.+?)^```", (ROOT / TUTORIAL).read_text(encoding="utf-8"), re.M | re.S
    )
    assert quoted == told
