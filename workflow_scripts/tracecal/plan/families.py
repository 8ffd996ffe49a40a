"""What the families of estimators are computed from."""

from tracecal.plan.results import QUESTIONS, SUBSETS, Family
from tracecal.plan.run import Run
from tracecal.registry.custom import custom_code
from tracecal.registry.estimators import FAMILIES

TASK = {"task": QUESTIONS}
TRACED = {"traces": "<results>/traces/{model}/{task}.arrow"}
FEATURES = {"features": "<results>/features/{model}/{task}.parquet"}
SAMPLED = {"samples": "<results>/samples/{model}/{task}.arrow"}


def families(run: Run) -> list[Family]:
    """Every family there is: those not listed here read the trace and the questions alone."""
    config = run.config
    compared = {}
    costly = {"task": f"<results>/{SUBSETS if config.study.broader else 'tasks'}/{{task}}.parquet"}
    # Samples are compared by a model only where the configuration says so.
    if config.sampling.equivalence == "nli":
        compared = {"comparisons": "<results>/comparisons/{model}/{task}.arrow"}
    equivalence = {"equivalence": config.sampling.equivalence}
    special = {
        "beam": {"inputs": {"beams": "<results>/beams/{model}/{task}.arrow"}},
        "token_sar": {"inputs": _weighed("token_sar") | costly},
        "mars": {"inputs": _weighed("mars")},
        "trace": {"inputs": FEATURES},
        "semantic_entropy": {
            "inputs": SAMPLED | compared,
            "settings": equivalence | {"same_meaning": config.sampling.same_meaning},
        },
        "selfcheckgpt": {"inputs": SAMPLED | compared | TRACED, "settings": equivalence},
        "lars": {"inputs": _learned("lars"), "by_task": True},
        "internal_probe": {"inputs": _learned("internal_probe") | costly, "by_task": True},
        "p_true": {"inputs": _asked("p_true")},
        "verbalized": {"inputs": _asked("verbalized")},
    }
    if file := config.custom_estimators:
        special["custom"] = {
            "inputs": TRACED | TASK | FEATURES,
            "settings": {"file": file, "held": custom_code(file)},
        }
    named = dict.fromkeys([*FAMILIES, *special])
    scores = {
        family: [e.id for e in run.chosen if e.family == family and not e.features]
        for family in named
    }
    usual = {"inputs": TRACED | TASK}
    return [Family(name, scores[name], **special.get(name, usual)) for name in named]


def _weighed(family: str) -> dict[str, str]:
    return TRACED | TASK | {"weights": f"<results>/weights/{family}/{{model}}/{{task}}.arrow"}


def _learned(family: str) -> dict[str, str]:
    return TASK | {"learned": f"<results>/work/learned/scores/{family}/{{model}}.parquet"}


def _asked(family: str) -> dict[str, str]:
    return {"asked": f"<results>/asked/{family}/{{model}}/{{task}}.arrow"}
