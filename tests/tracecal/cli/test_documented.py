"""What README.md and docs/answers.md say one can write runs as it stands."""

import re
import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest

from support.tiny import initialise_model, train_tokenizer
from tracecal.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
CALIBRATE, SCORE = r"tracecal (calibrate .+)", r"tracecal (score .+)"


def commands(page, pattern):
    return re.findall(rf"^ *{pattern}$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)


def programs():
    """The indented pieces of Python in docs/answers.md, without their indent."""
    text = (ROOT / "docs/answers.md").read_text(encoding="utf-8")
    return [
        re.sub("^ {4}", "", piece, flags=re.MULTILINE)
        for piece in re.findall(r"(?:^ {4}.+\n)+", text, re.MULTILINE)
        if "import" in piece
    ]


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A folder with labelled answers and new ones, under the names that the pages use."""
    shutil.copy(ROOT / "examples/labelled.jsonl", tmp_path / "labelled.jsonl")
    shutil.copy(ROOT / "examples/new.jsonl", tmp_path / "new.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["README.md", "docs/answers.md"])
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
    one, responding, generating = programs()
    (calibrate,) = commands("docs/answers.md", CALIBRATE)
    assert main(shlex.split(calibrate)) == 0
    names = {"surprisal": [0.1, 0.4], "entropy": [0.3, 0.5]}
    exec(one, names)
    token = {"token": "51", "logprob": -0.2, "top_logprobs": [{"token": "51", "logprob": -0.2}]}
    choice = {"message": {"content": "51"}, "logprobs": {"content": [token]}, "stop_reason": 0}
    exec(responding, names | {"response": {"choices": [choice]}, "request": {"temperature": 1}})
    tokenizer = train_tokenizer()
    inputs = tokenizer("What is 1 + 1?", return_tensors="pt", return_token_type_ids=False)
    model = initialise_model(len(tokenizer), "llama", 0)
    names |= {"model": model, "inputs": inputs, "calibrator": names["load"]("C.json")}
    exec(generating, names)
    assert "probability" in capsys.readouterr().out
