"""One machine lends its GPUs to one job at a time, however many a model requests."""

import re

import pytest

pytestmark = pytest.mark.runs


RESOURCES = "workflow_scripts/trace_workflow/config/job_resources.py"
FOUND = "return any("


@pytest.mark.parametrize(
    ("here", "gpus", "side_by_side"),
    [
        (True, {}, [2]),
        (True, {"gpus": 1}, [1, 1]),
        (True, {"gpus": 4}, [1, 1]),
        (False, {"gpus": 1}, [2]),
    ],
)
def test_jobs_take_turns_where_there_are_gpus(broken, here, gpus, side_by_side):
    models = [model | gpus for model in broken.smoke()["models"]]
    targets = [f"results/smoke/audits/{model['slug']}/arithmetic.json" for model in models]
    config = broken.variant("gpus", models=models)
    with broken.edited(RESOURCES, FOUND, f"return {here} if True else any("):
        # They take turns as real ones do, without loading a model each.
        process = broken.snakemake(*targets, "--touch", "--forcerun", "audit_traces", config=config)
    assert [int(n) for n in re.findall(r"Execute (\d+) jobs", process.stdout)] == side_by_side


def test_what_jobs_ask_of_a_machine_reruns_nothing(finished):
    asked = {"gpus": 2, "memory_gb": 64, "hours": 0.5}
    models = [model | asked for model in finished.smoke()["models"]]
    config = finished.variant("asked", models=models)
    assert finished.scheduled(config) == {"resolve_config": 1}
