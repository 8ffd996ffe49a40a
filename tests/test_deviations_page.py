"""The page of deviations states the settings that the code has, and is linked from where one looks."""

import re
from pathlib import Path

from trace_workflow.config.estimator_settings import Beams, Sampling
from tracecal.estimators import features
from tracecal.estimators.semantic_entropy import AGREES
from tracecal.fits.fit_settings import Calibration, Splits

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/background/deviations.md").read_text(encoding="utf-8")


def stated(pattern):
    (value,) = re.findall(pattern, PAGE)
    return float(value)


def test_the_page_states_the_defaults_of_the_code():
    assert stated(r"\| k = (\d+),") == features.K
    assert stated(r"\| p > ([\d.]+) \|") == features.HIGH_PROBABILITY
    assert stated(r"\| (\d+) of equal width \|") == Calibration().ece_bins
    assert stated(r"\| (\d+) % of the examples") == 100 * Splits().calibration_share
    assert stated(r"\| (\d+) \(`beams: \{width") == Beams().width
    assert set(re.findall(r"mutual_entailment|no_contradiction", PAGE)) == set(AGREES)
    assert f"same_meaning: {Sampling().same_meaning}}}`, the default" in PAGE


def test_the_page_is_linked():
    for page in ("README.md", "docs/tutorials/own_model.md"):
        assert "deviations.md)" in (ROOT / page).read_text(encoding="utf-8"), page
