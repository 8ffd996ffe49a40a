"""A student's day: 60 questions, a score of one's own, and whether it wins."""

import sys

import pytest
import yaml

from support.checkout import copied_repository
from trace_workflow.tables.csv_file import read_rows

pytestmark = pytest.mark.runs

FOLDER = "results/student"
CONFIG = {
    "run": "student",
    "models": [{"slug": "tiny", "source": {"path": "demo/models/tiny"}, "gpus": 0}],
    "tasks": [{"slug": "cities", "limit": 60, "training_limit": 0}],
    "study": {"main": {"models": ["tiny"], "tasks": ["cities"]}},
    "custom_estimators": "scores.py",
    "splits": {"count": 3},
    "audit": {"answers": 4},
    "bootstrap": {"resamples": 20},
}
BUILT_IN = ["seq_logp", "windowed_entropy", "mean_token_entropy", "trace", "trace_plus"]
FIRST = """\
import polars as pl

def gap(column):
    return -pl.col(column).list.first()

ESTIMATORS = {
    "first_gap": {"label": "My first gap", "score": gap("entropy")},
}
"""
SECOND = FIRST.replace(
    "}\n", '    "shortness": {"label": "My shortness", "score": -pl.col("log_length")},\n}\n'
)


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    checkout = copied_repository(tmp_path_factory.mktemp("student"))
    write(checkout, FIRST, "first_gap")
    return checkout


def write(checkout, scores, *ids):
    (checkout.root / "scores.py").write_text(scores, encoding="utf-8")
    config = CONFIG | {"estimators": [*BUILT_IN, *ids]}
    (checkout.root / "student.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def test_a_score_with_a_typo_stops_the_plan(student):
    write(student, FIRST.replace('"entropy"', '"entrpy"'), "first_gap")
    process = student.snakemake("--dry-run", config="student.yaml", check=False)
    write(student, FIRST, "first_gap")
    assert process.returncode
    assert "scores.py: the score 'first_gap' cannot be computed" in process.stdout
    assert "entrpy" in process.stdout and "Traceback" not in process.stdout


def test_a_run_says_whether_the_score_wins_and_a_second_score_recomputes_no_other(student):
    targets = [f"{FOLDER}/findings.txt", f"{FOLDER}/tables/main_comparison.csv"]
    student.snakemake(*targets, config="student.yaml")
    findings = read_rows(student.root / FOLDER / "findings.csv")
    own = [row for row in findings if row["estimator"] == "first_gap"]
    rivals = [(row["against"], row["metric"]) for row in own]
    chosen = ("named", "picked", "trace_plus")
    assert rivals[:6] == [(rival, metric) for rival in chosen for metric in ("auroc", "brier")]
    first = [row for row in findings if row["topic"] != "problem"][: len(own)]
    assert first == own, "they come first"
    for row in own[:6]:
        low, high = float(row["low"]), float(row["high"])
        verdict = "tied" if low <= 0 <= high else "won" if low > 0 else "lost"
        assert row["outcome"] == verdict or row["metric"] == "auroc"
        assert row["sentence"].startswith(("My first gap has a ", "My first gap ties in "))
        assert f"{row['low']:.6}"[:3] in row["sentence"]
    assert " TRACE+ (" in own[4]["sentence"]
    table = {row["estimator"]: row for row in read_rows(student.root / targets[1])}
    assert table["first_gap"]["cities_auroc"] == own[0]["value"]
    difference = table["first_gap_improvement_trace_plus"]["cities_brier"]
    assert float(difference) == pytest.approx(float(own[5]["difference"]))
    assert not any("average" in name for name in table["first_gap"])
    headline = student.call(
        *(sys.executable, "workflow_scripts", "headline", "--configfile", "student.yaml")
    )
    assert "My score:  My first gap " in headline.stdout

    write(student, SECOND, "first_gap", "shortness")
    scheduled = student.scheduled("student.yaml")
    scoring = ("generate", "label_answers", "compute_features", "estimate_", "join_scores")
    scored = {rule: n for rule, n in scheduled.items() if rule.startswith(scoring)}
    assert scored == {"estimate_custom_shortness": 1, "join_scores": 1}
