"""The families of estimators of a run, each with the files that it is scored from."""

from trace_workflow.config.custom import custom_code
from trace_workflow.config.run import Run
from trace_workflow.plan.entries import QUESTIONS, SUBSETS, Family
from tracecal.estimators.estimator import Estimator


def families(run: Run) -> list[Family]:
    """Every family of estimators, with the files that its estimators need."""
    names = dict.fromkeys(e.family for e in run.selection.available)
    return [_family(name, run) for name in names]


def _family(name: str, run: Run) -> Family:
    """One family: the needs of its first estimator with a score hold for all."""
    config, selection = run.config, run.selection
    first, *_ = selection.available.where(lambda e: e.family == name).scored
    scores = selection.chosen.where(lambda e: e.family == name).scored.ids
    on_subset = selection.on_subset_alone(first)
    rows = f"<results>/{SUBSETS}/{{task}}.parquet" if on_subset else QUESTIONS
    if first.supervised:
        learned = f"<results>/work/learned/scores/{name}/{{model}}.parquet"
        return Family(name, scores, {"learned": learned, "task": rows}, by_task=True)
    inputs = _inputs(first, rows, config.sampling.equivalence == "nli")
    if name == "custom":
        file = config.custom_estimators
        return Family(name, scores, inputs, {"file": file}, custom_code=custom_code(file))
    settings = {
        "samples": {"equivalence": config.sampling.equivalence},
        "meanings": {"same_meaning": config.sampling.same_meaning},
    }
    settings_of_needs = [settings.get(need, {}) for need in first.needs]
    return Family(name, scores, inputs, {k: v for s in settings_of_needs for k, v in s.items()})


def _inputs(estimator: Estimator, rows: str, compares_samples: bool) -> dict[str, str]:
    """The files that an estimator's family reads for a model and a task.

    A model compares samples only where the configuration asks for it (`compares_samples`).
    """
    traces = {"traces": "<results>/traces/{model}/{task}.arrow"}
    weights = {"weights": f"<results>/weights/{estimator.family}/{{model}}/{{task}}.arrow"}
    samples = {"samples": "<results>/samples/{model}/{task}.arrow"}
    if compares_samples:
        samples["comparisons"] = "<results>/comparisons/{model}/{task}.arrow"
    files = {
        # Samples are of evaluated rows alone.
        "traces": traces if "samples" in estimator.needs else traces | {"task": rows},
        "features": {"features": "<results>/features/{model}/{task}.parquet"},
        "beams": {"beams": "<results>/beams/{model}/{task}.arrow"},
        "similarity": weights,
        "importance": weights,
        "samples": samples,
        "meanings": {},
        "columns": {"task": rows},
        "asked": {"asked": f"<results>/asked/{estimator.family}/{{model}}/{{task}}.arrow"},
    }
    return {key: path for need in estimator.needs for key, path in files[need].items()}
