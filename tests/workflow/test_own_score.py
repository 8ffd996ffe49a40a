"""A student's day: 60 questions, a score of one's own, whether it wins, and a second model."""

import re
import sys

import pytest
import yaml

from support.checkout import copied_repository
from trace_workflow.tables.csv_file import read_rows

pytestmark = pytest.mark.runs

FOLDER = "results/student"
CONFIG = {
    "run": "student",
    "tasks": [{"slug": "cities", "limit": 60, "training_limit": 0}],
    "study": {"main": {"tasks": ["cities"]}},
    "custom_estimators": "scores.py",
    "splits": {"count": 3},
    "audit": {"answers": 4},
    "bootstrap": {"resamples": 20},
}
TINY = {"slug": "tiny", "source": {"path": "demo/models/tiny"}, "gpus": 0}
HALF = TINY | {"slug": "half", "label": "Half", "dtype": "bfloat16"}
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


def write(checkout, scores, *ids, models=(TINY,)):
    (checkout.root / "scores.py").write_text(scores, encoding="utf-8")
    config = CONFIG | {"models": [*models], "estimators": [*BUILT_IN, *ids]}
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


# What runs for a model and a task, but for its scores.
OF_A_PAIR = {
    *("generate", "audit_traces", "label_answers", "compute_features", "estimate_family"),
    *("join_scores", "calibrate", "control_risk", "measure", "resample"),
}
LEFT_OUT = r"60 questions: \d+ tables and \d+ figures need 200; `study.all_tables: true` draws them"


def jobs(output):
    """The jobs of a run's output by rule: the wildcards of each."""
    block = r"^(?:local)?rule (\w+):\n((?:    .*\n)*)"
    by_rule = {}
    for rule, lines in re.findall(block, output, re.M):
        wildcards = re.findall(r"[:,] (\w+)=([^,\n]+)", lines.partition("    wildcards")[2])
        by_rule.setdefault(rule, []).append(dict(wildcards))
    return by_rule


def test_a_second_model_runs_alone_and_is_compared(student):
    write(student, FIRST, "first_gap", models=(TINY, HALF))
    tables = [f"{FOLDER}/tables/{name}.csv" for name in ("cross_model", "main_comparison_half")]
    output = student.snakemake(f"{FOLDER}/findings.txt", *tables, config="student.yaml").stdout
    ran = jobs(output)
    pairs = {rule: {job.get("model") for job in members} for rule, members in ran.items()}
    assert {rule for rule, models in pairs.items() if models == {"half"}} == (
        OF_A_PAIR | {"link_model", "fingerprint_model"}
    )
    assert {rule for rule, models in pairs.items() if models == {None}} == {
        *("accuracy", "collect_metrics", "summarise", "tell_findings", "write_table")
    }
    across, half = (read_rows(student.root / table) for table in tables)
    assert [row["model"] for row in across] == ["tiny", "half", ""]
    assert across[1]["label"] == "Half" and float(across[1]["auroc_first_gap"]) > 0
    assert {row["model"] for row in half} == {"half"}
    assert {"seq_logp", "trace_plus", "first_gap"} <= {row["estimator"] for row in half}

    findings = (student.root / FOLDER / "findings.txt").read_text(encoding="utf-8")
    assert re.search(LEFT_OUT, output) and re.search(LEFT_OUT, findings)
    planned = jobs(student.snakemake("--dry-run", "--forceall", config="student.yaml").stdout)
    assert {job["table"] for job in planned["write_table"]} == {
        *("main_comparison", "main_comparison_half", "risk_coverage", "cross_model"),
        *("cross_model_task_details", "cross_model_best_estimators"),
    }
    figures = {job["figure"] for job in planned["draw_figure"]}
    assert figures == {"robustness_panels", "model_landscape"}


def test_a_second_score_is_compared_beside_the_first(student):
    write(student, SECOND, "first_gap", "shortness", models=(TINY, HALF))
    ran = jobs(student.snakemake(f"{FOLDER}/findings.txt", config="student.yaml").stdout)
    estimated = {(job["family"], job["model"]) for job in ran["estimate_family"]}
    assert estimated == {("custom_shortness", "tiny"), ("custom_shortness", "half")}
    assert not {"generate", "label_answers", "compute_features"} & ran.keys()
    findings = read_rows(student.root / FOLDER / "findings.csv")
    compared = [row for row in findings if row["topic"] == "comparison"]
    labels = dict.fromkeys(row["estimator_label"] for row in compared)
    assert [*labels] == ["My first gap", "My shortness", "TRACE+"]
    against = [row["against"] for row in compared if row["estimator"] == "shortness"]
    assert {"named", "picked", "trace_plus"} <= {*against}
    of_pairs = [row["sentence"] for row in compared if row["table"] == "cross_model"]
    assert all(re.match(r"Over [12] pairs? of model and task, ", text) for text in of_pairs)
