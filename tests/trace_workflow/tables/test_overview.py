"""The overview of the tables, and headings that stand over what they name."""

import re
from pathlib import Path

from tests.trace_workflow.tables import test_languages, test_risk_coverage
from tests.trace_workflow.tables.test_paper_tables import NAMES, made
from trace_workflow import tables as package
from tracecal.calibrator.page_frame import render_page

TEMPLATE = Path(package.__file__).with_name("overview.md")
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


def test_every_table_has_one_line():
    n_rows = {name: table.frame.height for name, table in tables().items()}
    titles = {name: name.title() for name in n_rows}
    page = render_page(TEMPLATE, "The tables", titles=titles, n_rows=n_rows)
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| [")]
    assert [row[0] for row in rows] == [f"| [`{name}`]({name}.html)" for name in n_rows]
    assert [int(row[1]) for row in rows] == [*n_rows.values()]
    assert len(page.split()) < 400


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
