"""CONTRIBUTING.md: what it says of the layers, and its recipes, applied to a copy of the tree."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layers import LAYERS, SCRIPTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", PAGE, re.M))
# How many files each recipe may touch, and what is there once they are changed.
PLANNED = """
from pathlib import Path
import polars as pl
from tracecal.io.input_files import read_yaml
from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from importlib import import_module
value = read_yaml("config/smoke.yaml")
made = plan(load_run(value, "config", Path(".")))
words = {n: w for page in read_yaml("report/contents.yaml").values() for n, w in page.items()}
"""
RECIPES = {
    "Add a task": (
        1,
        """
value["tasks"].append({"slug": "riddles"})
assert load_run(value, "config", Path(".")).tasks["riddles"].label == "Riddles"
""",
    ),
    "Add an estimator of a family that is there": (
        2,
        """
from tracecal.estimators.scores import family_scores
family = made.families["likelihood"]
assert "max_prob" in family.scores
frame = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.0, 1.0]], "entropy": [[0.0, 0.0]]})
scores = family_scores(frame, import_module(family.module).SCORES, ["max_prob"])
assert scores["max_prob"].to_list() == [1.0]
""",
    ),
    "Add a family of estimators": (
        2,
        """
from tracecal.estimators.scores import family_scores
family = made.families["concision"]
assert family.scores == ["concision"]
frame = pl.DataFrame({"example_id": ["a", "b"], "log_length": [0.0, 1.5]})
frame.write_parquet("features.parquet")
module = import_module(family.module)
read = module.answers(**dict.fromkeys(family.inputs, "features.parquet"), **family.settings)
assert family_scores(read, module.SCORES, family.scores)["concision"].to_list() == [0.0, -1.5]
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
    "Add an analysis beyond the paper, with its table": (
        4,
        """
from tracecal.io.files import write_parquet
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.study_results import StudyResults
analysis, entry = made.analyses["error_counts"], made.tables["error_counts"]
labels = pl.DataFrame({"example_id": ["a", "b"], "correct": [True, False]})
write_parquet(labels, "labels.parquet")
files = StudyFiles({"labels": ["labels.parquet"]}, [["m", "arithmetic"]])
frame = import_module(analysis.module).analysis(files)
study = StudyResults({"error_counts": frame}, [], **made.table_settings("error_counts"))
table = import_module(entry.module).table(study)
assert render_csv(table).splitlines()[1] == "arithmetic,2,1,Arithmetic"
assert "{" not in made.table_words("error_counts", words["error_counts"], [])["caption"]
""",
    ),
    "Add a format of answers": (
        2,
        """
import json
import tracecal
(line,) = Path("tests/tracecal/answers/recorded/helm.jsonl").read_text().splitlines()
for name in ("auto", "helm"):
    row, reading = json.loads(line)["row"], tracecal.Reading(format=name, vocabulary=9)
    read = tracecal.read_answers([row], reading=reading)
    assert read["surprisal"].to_list() == [[0.25, 0.5]]
    assert read["stop_token"].to_list() == ["included"]
""",
    ),
    "Add a command": (
        3,
        """
import contextlib, io
from tracecal.cli.main import main
Path("log.jsonl").write_text('{"id": "a", "answer": "x"}\\n')
said = io.StringIO()
with contextlib.redirect_stdout(said):
    assert main(["count", "--answers", "log.jsonl"]) == 0
assert said.getvalue() == "1 answers, 0 with log-probabilities\\n"
""",
    ),
    "Add a key of the configuration": (
        2,
        """
value["title"] = "Ours"
assert load_run(value, "config", Path(".")).config.title == "Ours"
assert "CONFIG.title" in Path("rules/report.smk").read_text()
""",
    ),
}


def diff_of(name):
    (diff,) = re.findall(r"^```diff\n(.+?)^```$", SECTIONS[name], re.M | re.S)
    return diff


def copied_to(folder):
    """A copy of what git tracks, and of what is new beside it."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def apply(diff, folder):
    subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, text=True, check=True)


def test_the_layers_are_described_by_their_own_sentences_in_their_order():
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", SECTIONS["The map"], re.M)
    sentences = [
        (layer, ast.get_docstring(ast.parse((folder / "__init__.py").read_text())))
        for package, layers in LAYERS.items()
        for layer in layers
        if (folder := SCRIPTS / package / layer).is_dir()
    ]
    assert listed == sentences


@pytest.mark.parametrize("name", RECIPES)
def test_an_addition_is_made_by_its_recipe(name, tmp_path):
    most, check = RECIPES[name]
    assert len(re.findall(r"^\+\+\+ ", diff_of(name), re.M)) <= most
    for folder in ("workflow_scripts", "config", "report", "rules", "tests/tracecal/api"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    apply(diff_of(name), tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", PLANNED + check],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "workflow_scripts")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_every_recipe_is_tried():
    assert {name for name, text in SECTIONS.items() if "```diff" in text} == set(RECIPES)


# The tests of what the recipes add to, and those that read the registry. The others read neither
# the plan, the configuration's keys, nor the lists of estimators, formats and commands.
READING = """
test_imports.py test_layers.py test_links.py test_profiles.py test_report.py
trace_workflow/analyses/test_calibration_size.py trace_workflow/analyses/test_cross_task_transfer.py
trace_workflow/analyses/test_few_labels.py trace_workflow/analyses/test_localized_errors.py
trace_workflow/analyses/test_reliability_selective.py
maintenance trace_workflow/config trace_workflow/figures/test_robustness_panels.py
trace_workflow/contents trace_workflow/tables
tracecal/answers tracecal/api tracecal/explorer/test_page.py
tracecal/explorer/test_shown.py tracecal/fits/test_few_labels.py
tracecal/fits/test_protocol.py tracecal/calibrator/test_score.py
tracecal/cli/test_command.py tracecal/cli/test_documented.py tracecal/estimators
""".split()


@pytest.mark.recipes
def test_with_all_recipes_together_the_tests_of_what_they_add_to_pass(tmp_path):
    copied_to(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in RECIPES:
        apply(diff_of(name), tmp_path)
    environment = os.environ | {"PYTHONPATH": "workflow_scripts"}
    for name in ("describe_config", "describe_api"):
        command = [sys.executable, "-m", f"maintenance.{name}"]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    # The data that tests read beside a checkout, and its environment.
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    chosen = [f"tests/{name}" for name in READING]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *chosen],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:]
