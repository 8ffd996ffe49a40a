"""One machine lends its GPUs to one job at a time, however many a model asks for."""

import re

import pytest

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(
    ("gpus", "side_by_side"),
    [({}, [2]), ({"gpus": 1}, [1, 1]), ({"gpus": 4, "device_map": "auto"}, [1, 1])],
)
def test_jobs_that_use_gpus_run_one_after_the_other(broken, gpus, side_by_side):
    models = [model | gpus for model in broken.smoke()["models"]]
    targets = [f"results/smoke/audits/{model['slug']}/arithmetic.json" for model in models]
    for target in targets:
        (broken.root / target).unlink()
    process = broken.snakemake(*targets, config=broken.variant("gpus", models=models))
    assert [int(n) for n in re.findall(r"Execute (\d+) jobs", process.stdout)] == side_by_side


def test_what_jobs_ask_of_a_machine_reruns_nothing(finished):
    asked = {"gpus": 2, "device_map": "auto", "memory_gb": 64, "hours": 0.5}
    models = [model | asked for model in finished.smoke()["models"]]
    config = finished.variant("asked", models=models)
    assert finished.scheduled(config) == {"resolve_config": 1}
