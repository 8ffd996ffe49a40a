"""Which estimators a run computes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracecal.config.encoders import require_encoders
from tracecal.config.run import Config
from tracecal.config.supervised import require_training_rows
from tracecal.errors import InputError
from tracecal.registry.custom_estimators import custom_estimators
from tracecal.registry.estimators import ESTIMATORS, Estimator
from tracecal.tasks.spec import TaskSpec

# What to call the artefacts that estimators need, where their names do not say it.
ARTEFACT_NAMES = {
    "asked": "answers to further questions",
    "hidden": "hidden states",
    "weights": "encoders",
}
# What takes another pass of the model, or more. TokenSAR's encoder reads an answer once a token.
COSTLY_NEEDS = frozenset({"beams", "samples", "asked", "hidden"})
COSTLY_FAMILY = "token_sar"


def choose(config: Config, tasks: Mapping[str, TaskSpec]) -> tuple[list[Estimator], dict[str, str]]:
    """The chosen estimators in the registry's order, and why each of the others is left out.

    Raises `InputError` where an estimator that the configuration names cannot be computed. Where
    it names none, every estimator whose needs are met is chosen.
    """
    registered = [_labelled(estimator, config) for estimator in ESTIMATORS]
    available = [*registered, *custom_estimators(config.custom_estimators)]
    if config.estimators is not None:
        chosen = [estimator for estimator in available if estimator.id in config.estimators]
        require_training_rows(chosen, _broader_pairs(config), tasks, config.lars)
        for model, task in config.study.pairs():
            if config.of_parts(task) and not chosen_for(model, chosen, config, task):
                raise InputError(
                    f"config: 'estimators' names none that can be computed for {task!r}: parts of "
                    "answers have traces and labels alone; name another estimator."
                )
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


def _labelled(estimator: Estimator, config: Config) -> Estimator:
    """The estimator under a label that names the variant of it that is configured."""
    sampling = config.sampling
    varied = (sampling.equivalence, sampling.same_meaning) == ("nli", "no_contradiction")
    if estimator.id == "semantic_entropy" and varied:
        return replace(estimator, label="Semantic Entropy (no contradiction)")
    return estimator


def chosen_for(
    model: str, chosen: Sequence[Estimator], config: Config, task: str | None = None
) -> list[Estimator]:
    """Those of the run's estimators that are computed for one model of its studies, on one `task`;
    where that is null, on tasks of whole answers.
    """
    wants_broader = config.wants_broader(model)
    answered = config.answered(model) if task is None else config.only_traces(model, task)
    return [
        estimator
        for estimator in chosen
        if (estimator.role != "broader" or wants_broader)
        and (not answered or not beyond_traces(estimator))
        and not (config.study.broader and costly(estimator))
    ]


def chosen_on_subset(chosen: Sequence[Estimator], config: Config) -> list[Estimator]:
    """Those that the main study's model is compared with on a subset of its answers."""
    whole = config.model_copy(update={"study": config.study.model_copy(update={"broader": None})})
    return chosen_for(config.study.main.model, chosen, whole) if config.study.broader else []


def costly(estimator: Estimator) -> bool:
    """Whether a run with `study.broader` computes an estimator on the subset alone."""
    return any(
        not COSTLY_NEEDS.isdisjoint(entry.needs) or entry.family == COSTLY_FAMILY
        for entry in _with_bases(estimator)
    )


def _with_bases(estimator: Estimator) -> list[Estimator]:
    by_id = {entry.id: entry for entry in ESTIMATORS}
    return [estimator, *(by_id[name] for name in estimator.built_on)]


def beyond_traces(estimator: Estimator) -> str:
    """What an estimator needs beyond traces and labels; empty if nothing."""
    for entry in _with_bases(estimator):
        if entry.supervised:
            return "labelled training answers"
        if more := [need for need in entry.needs if need not in ("traces", "labels")]:
            return ARTEFACT_NAMES.get(more[0], more[0])
    return ""


def missing_from_files(config: Config, chosen: Sequence[Estimator]) -> dict[str, str]:
    """By model whose answers come from files: the estimators not computed for it, and why."""
    models = {model for model, _ in config.study.pairs() if config.answered(model)}
    reasons = _reasons(chosen)
    return dict.fromkeys(sorted(models), reasons) if reasons else {}


def missing_from_parts(config: Config, chosen: Sequence[Estimator]) -> dict[str, str]:
    """By task of parts of answers: the estimators not computed for it, and why."""
    reasons = _reasons(chosen)
    tasks = config.study.parts.tasks if config.study.parts else ()
    return dict.fromkeys(tasks, reasons) if reasons else {}


def _reasons(chosen: Sequence[Estimator]) -> str:
    """The estimators that traces are not enough for, by what they need."""
    reasons: dict[str, list[str]] = {}
    for estimator in chosen:
        if needed := beyond_traces(estimator):
            reasons.setdefault(needed, []).append(estimator.id)
    return "; ".join(f"{', '.join(ids)} (need {needed})" for needed, ids in reasons.items())


def _broader_pairs(config: Config) -> list[tuple[str, str]]:
    """The (model, task) pairs for which all methods of role 'broader' are computed."""
    return [
        (model, task)
        for model, task in config.study.pairs()
        if config.wants_broader(model) and not config.only_traces(model, task)
    ]


def _lack(estimator: Estimator, config: Config, tasks: Mapping[str, TaskSpec]) -> str:
    """What the configuration lacks for an estimator; empty if nothing."""
    if (needed := beyond_traces(estimator)) and all(
        config.answered(m) for m, _ in config.study.pairs()
    ):
        return f"it needs {needed}, and all answers come from files"
    try:
        require_encoders(config.encoders, config.sampling, [estimator.id], config.world is not None)
        require_training_rows([estimator], _broader_pairs(config), tasks, config.lars)
    except ValueError as error:
        return str(error)
    return ""
