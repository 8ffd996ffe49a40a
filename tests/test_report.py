"""The report's table of contents and the captions that several tables share."""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from jinja2 import Environment

from tracecal.render.averaged import AVERAGED

REPORT = Path(__file__).resolve().parents[1] / "report"
CONTENTS = yaml.safe_load((REPORT / "contents.yaml").read_text(encoding="utf-8"))
TABLES = """
main_comparison cross_model bridge ablation semantic_fusion cross_task_transfer spike_strata
spike_modeling trace_plus_features protocol_comparison cross_model_task_details broader_uq
cross_model_best_estimators localized_global_errors operator_ablation hyperparameter_sensitivity
position_shift localized_error_subtypes calibration_size reliability_selective length_stratified
languages risk_coverage costs
""".split()
FIGURES = """
performance_overview framework spike_evidence local_risk_aggregation model_landscape
robustness_panels
""".split()


def caption(file, **wildcards):
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((REPORT / file).read_text(encoding="utf-8"))
    return template.render(snakemake=SimpleNamespace(wildcards=SimpleNamespace(**wildcards)))


def named(file):
    return re.findall(r'^"(\w+)": "$', (REPORT / file).read_text(encoding="utf-8"), re.M)


def test_every_table_and_figure_is_listed_once():
    listed = Counter(name for shown in CONTENTS.values() for name in shown)
    assert listed == Counter([*TABLES, *FIGURES, "explorer"])


def test_labels_tell_results_of_a_page_apart_and_figures_from_tables():
    for shown in CONTENTS.values():
        assert len(set(shown.values())) == len(shown)
        assert {name for name, label in shown.items() if label.endswith("(figure)")} == set(
            FIGURES
        ) & set(shown)


def test_every_averaged_table_has_a_caption_of_its_own():
    assert set(named("averaged.rst")) == set(AVERAGED)


@pytest.mark.parametrize(
    ("file", "wildcard"), [("averaged.rst", "averaged"), ("analysis.rst", "analysis")]
)
def test_a_shared_caption_tells_its_tables_apart(file, wildcard):
    names = named(file)
    captions = [caption(file, **{wildcard: name}) for name in names]
    assert set(names) <= set(TABLES)
    assert len(set(captions)) == len(names)
    assert min(map(len, captions)) > 100
    assert not any(re.search(r"[{}%]{2}|\"", text) for text in captions)
