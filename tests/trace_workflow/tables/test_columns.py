"""The dictionary of the CSVs: something of every column of every table, nothing of others."""

import re

import pytest

from tests.trace_workflow.tables import test_languages, test_risk_coverage
from tests.trace_workflow.tables.test_paper_tables import NAMES, TASKS, made
from trace_workflow.tables import columns
from trace_workflow.tables.paper_comparison import COMPARED
from tracecal.io.input_files import read_yaml

TOLD = read_yaml(columns.COLUMNS)
# What a printed heading says, and what the key of its column must then hold.
HEADINGS = {
    "Brier": "brier",
    "AUROC": "auroc",
    r"ECE \(debiased\)": "ece_debiased",
    "ECE": "ece",
    r"TRACE\+": "trace_plus",
    "[Ss]elected baseline": "picked",
    "prespecified": "named",
    "supported": "supported_wins",
    "Wins": "wins",
    "Δ|Gain|Improvement": "improvement",
    "Best estimator|Estimator": "best_baseline_label",
    "Base ": "best_baseline",
    "Acc\\.": "accuracy",
    "Correct": "right answers",
    "^ n$": "n",
    "Groups": "groups",
    "Threshold": "threshold",
    "Coverage": "coverage",
    "Wrong": "wrong",
    "Error of all": "error_of_all",
    "Mean risk": "risk",
    "Spike gap": "spike",
    "Incorr": "incorrect_rate",
    "Loc\\.|Localized": "localized",
    "Glob": "global",
    "TPR@5%": "tpr_at_5",
    "TPR@10%": "tpr_at_10",
    "TPR@20%": "tpr_at_20",
    "pAUC": "pauc",
    "Best at": "best_at",
    "Original": "original",
    "Position-shifted": "shifted",
    "Number/": "number",
    "Entity/": "entity",
    "Claim": "claim",
    "SeqLogP$": "seq_logp",
    "R@10 ": "risk_at_10",
    "R@50 ": "risk_at_50",
    "R@90 ": "risk_at_90",
    "Short": "short",
    "Medium": "medium",
    "Long": "long",
}


def tables():
    every = {name: made(name) for name in NAMES}
    every["languages"] = test_languages.table("de", "zh")
    every["risk_coverage"] = test_risk_coverage.risk_coverage(
        test_risk_coverage.CONTROLS, test_risk_coverage.MODELS, test_risk_coverage.TASKS
    )
    return every


def test_every_column_of_every_table_has_a_unit_and_a_meaning():
    headers = {name: table.frame.columns for name, table in tables().items()}
    page = columns.describe_tables(headers, {name: name.title() for name in headers}, TASKS)
    for name, header in headers.items():
        section = page.split(f"## {name}.csv: ")[1].split("\n## ")[0]
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
        assert [row[0].strip("| `") for row in rows] == header
        assert all(len(row) == 3 and all(cell.strip(" |") for cell in row) for row in rows)
        assert "{" not in section


def test_a_heading_stands_over_the_column_that_it_names():
    said = set()
    for name, table in tables().items():
        for column in table.columns:
            heading, key = f"{column.group} {column.label} ", " ".join(column.keys)
            for words, of_key in HEADINGS.items():
                if re.search(words, heading.rstrip() if words.endswith("$") else heading):
                    said.add(words)
                    assert of_key.casefold() in key, (name, heading, key)
    assert said == HEADINGS.keys()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("svamp_brier", "on SVAMP"),
        ("short_auroc", "of short answers"),
        ("trace_plus_brier", "`trace_plus`: Brier"),
        ("brier_sd", "s.d. of `brier`"),
        ("auroc_calibrated_picked_improvement_low", "`auroc_calibrated_picked_improvement`"),
        ("enough_0.05", "to guarantee 0.05"),
    ],
)
def test_parts_of_a_name_are_told_apart(column, words):
    assert words in columns.describe_column(column, TASKS, TOLD)[1]


def test_an_unknown_column_is_an_error():
    with pytest.raises(ValueError, match="does not describe the column 'unheard_of'"):
        columns.describe_column("unheard_of", TASKS, TOLD)


def test_the_columns_beside_the_paper_are_those_that_are_told():
    assert [name for name, *_ in TOLD["beside"]] == list(COMPARED)
