"""The guarantee that a run fixes beforehand."""

from pathlib import Path

import pytest

from trace_workflow.config.run import load_run
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
SMOKE = read_yaml(ROOT / "config/smoke.yaml")


def headline(tasks, **changes):
    main = {"main": SMOKE["study"]["main"] | {"tasks": tasks}}
    study = SMOKE["study"] | main | {"cross": None, "headline": None}
    return load_run(SMOKE | {"study": study} | changes, "config", ROOT).headline


@pytest.mark.parametrize(("rates", "rate"), [([0.1, 0.2, 0.3], 0.2), ([0.05, 0.3], 0.3)])
def test_a_single_task_is_the_headline_at_the_usual_rate(rates, rate):
    guarantee = headline(["arithmetic"], risk_control={"error_rates": rates})
    assert guarantee.model_dump() == {"task": "arithmetic", "error_rate": rate}


def test_of_several_tasks_none_is_chosen():
    assert headline(["arithmetic", "extractive"]) is None
