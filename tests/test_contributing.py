"""CONTRIBUTING.md: what it says of the rooms, and its diffs, applied to a copy of the tree."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow_scripts/tracecal"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", PAGE, re.M))
# How many files each addition may touch, and what is there once they are changed.
PLANNED = """
from pathlib import Path
import polars as pl
from tracecal.inputs.files import read_yaml
from tracecal.plan.plan import plan
from tracecal.plan.run import load_run
from importlib import import_module
value = read_yaml("config/smoke.yaml")
made = plan(load_run(value, "config", Path(".")))
words = {n: w for page in read_yaml("report/contents.yaml").values() for n, w in page.items()}
"""
ADDITIONS = {
    "Add a task": (
        1,
        """
value["tasks"].append({"slug": "riddles"})
assert load_run(value, "config", Path(".")).tasks["riddles"].label == "Riddles"
""",
    ),
    "Add a figure": (
        3,
        """
figure = made.figures["token_counts"]
frame = pl.DataFrame({"entropy": [[0.5, 0.1], [2.0]]})
assert import_module(figure.module).draw(**{name: frame for name in figure.inputs}).axes
assert words["token_counts"]["caption"]
""",
    ),
    "Add an estimator of a family that is there": (
        2,
        """
from tracecal.estimate.scores import family_scores
family = made.families["likelihood"]
assert "max_prob" in family.scores
frame = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.0, 1.0]]})
scores = family_scores(frame, import_module(family.module).SCORES, ["max_prob"])
assert scores["max_prob"].to_list() == [1.0]
assert "max_prob" in [one["id"] for one in made.shown("main_comparison")]
""",
    ),
    "Add a family of estimators": (
        4,
        """
from tracecal.estimate.scores import family_scores
family = made.families["length"]
assert family.scores == ["brevity"]
frame = pl.DataFrame({"example_id": ["a", "b"], "log_length": [0.0, 1.5]})
frame.write_parquet("features.parquet")
module = import_module(family.module)
read = module.answers(**dict.fromkeys(family.inputs, "features.parquet"), **family.settings)
assert family_scores(read, module.SCORES, family.scores)["brevity"].to_list() == [0.0, -1.5]
""",
    ),
    "Add an analysis with its table": (
        4,
        """
from tracecal.storage.files import write_parquet
from tracecal.tables.columns import COLUMNS, meaning
from tracecal.tables.settings import Settings
from tracecal.writers import csv
analysis, entry = made.analyses["error_counts"], made.tables["error_counts"]
labels = pl.DataFrame({"example_id": ["a", "b"], "correct": [True, False]})
write_parquet(labels, "labels.parquet")
found = import_module(analysis.module).analysis(["labels.parquet"], [["m", "arithmetic"]])
settings = Settings([], **made.settings("error_counts"))
table = import_module(entry.module).table({"error_counts": found}, settings)
assert csv.render(table).splitlines()[1] == "arithmetic,2,1,Arithmetic"
for column in csv.render(table).splitlines()[0].split(","):
    assert meaning(column, {}, read_yaml(COLUMNS))
assert "{" not in made.words("error_counts", words["error_counts"], [])["caption"]
""",
    ),
    "Add a format of answers": (
        3,
        """
from tracecal.logs.options import Reading
from tracecal.logs.read import read_answers
for name in ("auto", "tgi"):
    read = read_answers("tests/logs/real/tgi.jsonl", Reading(format=name, vocabulary=9))
    assert read.frame["surprisal"].to_list() == [[0.25, 0.5]]
    assert read.frame["stop_token"].to_list() == ["included"]
""",
    ),
}


def test_the_rooms_are_described_by_their_own_sentences_in_their_order():
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", SECTIONS["The map"], re.M)
    from test_rooms import ROOMS

    sentences = [
        (room, ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())))
        for room in ROOMS
    ]
    assert listed == sentences


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_is_made_by_its_diff(name, tmp_path):
    most, check = ADDITIONS[name]
    (diff,) = re.findall(r"^```diff\n(.+?)^```$", SECTIONS[name], re.M | re.S)
    assert len(re.findall(r"^\+\+\+ ", diff, re.M)) <= most
    for folder in ("workflow_scripts/tracecal", "config", "report"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff, text=True, check=True)
    run = subprocess.run(
        [sys.executable, "-c", PLANNED + check],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "workflow_scripts")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_every_kind_of_addition_with_a_diff_is_tried():
    assert {name for name, text in SECTIONS.items() if "```diff" in text} == set(ADDITIONS)
