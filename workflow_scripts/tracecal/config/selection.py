"""Which estimators a run computes."""

from collections.abc import Mapping, Sequence

from tracecal.config.encoders import require_encoders
from tracecal.config.run import Config
from tracecal.config.supervised import require_training_rows
from tracecal.errors import InputError
from tracecal.own_estimators import own_estimators
from tracecal.registry import ESTIMATORS, Estimator
from tracecal.tasks.spec import TaskSpec

# What to call the artefacts that estimators need, where their names do not say it.
ALSO = {"asked": "answers to further questions", "hidden": "hidden states", "weights": "encoders"}


def choose(config: Config, tasks: Mapping[str, TaskSpec]) -> tuple[list[Estimator], dict[str, str]]:
    """The chosen estimators in the registry's order, and why each of the others is left out.

    Raises `InputError` where an estimator that the configuration names cannot be computed. Where
    it names none, every estimator whose needs are met is chosen.
    """
    available = [*ESTIMATORS, *own_estimators(config.own_estimators)]
    if config.estimators is not None:
        chosen = [estimator for estimator in available if estimator.id in config.estimators]
        require_training_rows(chosen, _broader_pairs(config), tasks, config.lars)
        for model, _ in config.pairs():
            if not chosen_for(model, chosen, config):
                raise InputError(
                    "config: 'estimators' names broader methods alone, and 'study.cross.broader: "
                    f"false' computes none for model {model!r}; set it to true, or name another "
                    "estimator."
                )
        return chosen, {}
    left_out: dict[str, str] = {}
    for estimator in available:
        bases = [name for name in estimator.built_on if name in left_out]
        if reason := f"{bases[0]} is left out" if bases else _lack(estimator, config, tasks):
            left_out[estimator.id] = reason
    return [estimator for estimator in available if estimator.id not in left_out], left_out


def chosen_for(model: str, chosen: Sequence[Estimator], config: Config) -> list[Estimator]:
    """Those of the run's estimators that are computed for one model of its studies."""
    wants_broader, answered = config.wants_broader(model), config.answered(model)
    return [
        estimator
        for estimator in chosen
        if (estimator.role != "broader" or wants_broader)
        and (not answered or not beyond_traces(estimator))
    ]


def beyond_traces(estimator: Estimator) -> str:
    """What an estimator needs beyond traces and labels; empty if nothing."""
    by_id = {entry.id: entry for entry in ESTIMATORS}
    for entry in (estimator, *(by_id[name] for name in estimator.built_on)):
        if entry.supervised:
            return "labelled training answers"
        if more := [need for need in entry.needs if need not in ("traces", "labels")]:
            return ALSO.get(more[0], more[0])
    return ""


def missing_from_files(config: Config, chosen: Sequence[Estimator]) -> dict[str, str]:
    """By model whose answers come from files: the estimators not computed for it, and why."""
    models = {model for model, _ in config.pairs() if config.answered(model)}
    reasons: dict[str, list[str]] = {}
    for estimator in chosen:
        if needed := beyond_traces(estimator):
            reasons.setdefault(needed, []).append(estimator.id)
    reason = "; ".join(f"{', '.join(ids)} (need {needed})" for needed, ids in reasons.items())
    return dict.fromkeys(sorted(models), reason) if reason else {}


def _broader_pairs(config: Config) -> list[tuple[str, str]]:
    """The (model, task) pairs for which all methods of role 'broader' are computed."""
    return [
        (model, task)
        for model, task in config.pairs()
        if config.wants_broader(model) and not config.answered(model)
    ]


def _lack(estimator: Estimator, config: Config, tasks: Mapping[str, TaskSpec]) -> str:
    """What the configuration lacks for an estimator; empty if nothing."""
    if (needed := beyond_traces(estimator)) and all(config.answered(m) for m, _ in config.pairs()):
        return f"it needs {needed}, and all answers come from files"
    try:
        require_encoders(config.encoders, config.sampling, [estimator.id], config.world is not None)
        require_training_rows([estimator], _broader_pairs(config), tasks, config.lars)
    except ValueError as error:
        return str(error)
    return ""
