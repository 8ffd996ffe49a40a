"""The paper's LaTeX, and the tables in it."""

from pathlib import Path

import pytest

TEX_LABELS = {
    "main_comparison": "main_generation_calibration",
    "cross_model": "model_generalization",
    "bridge": "trace_bridge",
    "ablation": "trace_ablation",
    "cross_task_transfer": "cross_task_transfer_oracle",
    "spike_strata": "spike_strata_rates",
    "spike_modeling": "spike_modeling_metrics",
    "operator_ablation": "trace_operator_ablation",
    "hyperparameter_sensitivity": "trace_hyperparameter_sensitivity",
    "position_shift": "trace_position_shift",
    "calibration_size": "calibration_size_data",
    "reliability_selective": "reliability_selective_data",
    "length_stratified": "length_stratified_data",
}


def read_paper(shared_data: Path) -> str:
    """The paper's source; the test is skipped where it is not."""
    path = shared_data.parent / "paper" / "trace.tex"
    if not path.is_file():
        pytest.skip(f"the paper is not at {path}")
    return path.read_text(encoding="utf-8")


def tabular(paper: str, table: str) -> str:
    """The rows of a table in LaTeX, between its outer rules."""
    label = paper.index(rf"\label{{tab:{TEX_LABELS.get(table, table)}}}")
    start = paper.rindex(r"\begin{table", 0, label)
    return paper[paper.index(r"\toprule", start) : paper.index(r"\bottomrule", start)]
