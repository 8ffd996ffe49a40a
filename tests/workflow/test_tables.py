"""The tables and figures of a finished run: the paper's, and as an author takes them into one."""

import re

import pytest

from support import citations
from support.typeset import SETUPS, typeset

pytestmark = pytest.mark.runs


IN_PAPER = {
    "tables": "main_comparison cross_model bridge ablation semantic_fusion cross_task_transfer "
    "spike_strata spike_modeling trace_plus_features protocol_comparison cross_model_task_details "
    "broader_uq cross_model_best_estimators localized_global_errors operator_ablation "
    "hyperparameter_sensitivity position_shift localized_error_subtypes calibration_size "
    "reliability_selective length_stratified",
    "figures": "performance_overview framework spike_evidence local_risk_aggregation "
    "model_landscape robustness_panels",
}
KINDS = {"tables": ("tex", "csv", "html"), "figures": ("pdf", "svg")}
FILES = [
    f"{folder}/{name}.{kind}"
    for folder, names in IN_PAPER.items()
    for name in names.split()
    for kind in KINDS[folder]
]


def test_the_papers_tables_and_figures_are_made_and_its_configuration_plans_them(finished):
    assert [len(names.split()) for names in IN_PAPER.values()] == [21, 6]
    folder = finished.root / "results/smoke"
    assert [name for name in FILES if not (folder / name).stat().st_size] == []
    planned = finished.snakemake("--dry-run", config="config/paper.yaml").stdout
    outputs = " ".join(re.findall(r"^    output: (.*)$", planned, re.M)).replace(",", "").split()
    assert {f"results/paper/{name}" for name in FILES} <= {*outputs}


@pytest.mark.parametrize("setup", SETUPS)
def test_all_tables_make_one_document_with_its_bibliography(finished, setup, tmp_path):
    folder = finished.root / "results/smoke/tables"
    tables = sorted(folder.glob("*.tex"))
    assert "risk_coverage" in {path.stem for path in tables}
    assert typeset(tables, folder / "references.bib", setup, tmp_path) == []


def test_the_bibliography_beside_the_tables_holds_all_they_cite(finished):
    folder = finished.root / "results/smoke/tables"
    known = set(citations.keys((folder / "references.bib").read_text(encoding="utf-8")))
    cited = set().union(
        *(citations.cited(path.read_text(encoding="utf-8")) for path in folder.glob("*.tex"))
    )
    assert cited and cited <= known
