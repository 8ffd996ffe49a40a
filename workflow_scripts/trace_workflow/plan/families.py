"""The families of estimators of a run, each with the files that it is scored from."""

from trace_workflow.config.custom import custom_code
from trace_workflow.config.selection import Run
from trace_workflow.plan.entries import QUESTIONS, SUBSETS, Family


def families(run: Run) -> list[Family]:
    """Every family of estimators, with the files that its estimators need."""
    names = dict.fromkeys(e.family for e in run.selection.available)
    return [_family(name, run) for name in names]


def _family(name: str, run: Run) -> Family:
    """One family: what is said of its first estimator with a score holds for all."""
    config, selection = run.config, run.selection
    one, *_ = selection.available.where(lambda e: e.family == name).scored
    chosen = selection.chosen.where(lambda e: e.family == name).scored.ids
    rows = f"<results>/{SUBSETS}/{{task}}.parquet" if selection.on_subset_alone(one) else QUESTIONS
    if one.supervised:
        scores = f"<results>/work/learned/scores/{name}/{{model}}.parquet"
        return Family(name, chosen, {"learned": scores, "task": rows}, by_task=True)
    traces = {"traces": "<results>/traces/{model}/{task}.arrow"}
    weights = {"weights": f"<results>/weights/{name}/{{model}}/{{task}}.arrow"}
    samples = {"samples": "<results>/samples/{model}/{task}.arrow"}
    # Samples are compared by a model only where the configuration says so.
    if config.sampling.equivalence == "nli":
        samples["comparisons"] = "<results>/comparisons/{model}/{task}.arrow"
    read = {
        # Samples are of evaluated rows alone.
        "traces": traces if "samples" in one.needs else traces | {"task": rows},
        "features": {"features": "<results>/features/{model}/{task}.parquet"},
        "beams": {"beams": "<results>/beams/{model}/{task}.arrow"},
        "similarity": weights,
        "importance": weights,
        "samples": samples,
        "meanings": {},
        "columns": {"task": rows},
        "asked": {"asked": f"<results>/asked/{name}/{{model}}/{{task}}.arrow"},
    }
    set_by = {
        "samples": {"equivalence": config.sampling.equivalence},
        "meanings": {"same_meaning": config.sampling.same_meaning},
    }
    inputs = {key: path for need in one.needs for key, path in read[need].items()}
    settings = {key: of for need in one.needs for key, of in set_by.get(need, {}).items()}
    if name == "custom":
        file = config.custom_estimators
        return Family(name, chosen, inputs, {"file": file}, custom_code=custom_code(file))
    return Family(name, chosen, inputs, settings)
