"""Which estimators a run computes."""

from collections.abc import Mapping, Sequence

from tracecal.config import Config
from tracecal.encoders import require_encoders
from tracecal.errors import InputError
from tracecal.registry import ESTIMATORS, Estimator
from tracecal.supervision import require_training_rows
from tracecal.tasks.spec import TaskSpec


def choose(config: Config, tasks: Mapping[str, TaskSpec]) -> tuple[list[Estimator], dict[str, str]]:
    """The estimators in the registry's order, and why each of the others is left out.

    Those that the configuration names must all be computable: else `InputError`. Where it names
    none, all are chosen for which it has what they need.
    """
    if config.estimators is not None:
        chosen = [one for one in ESTIMATORS if one.id in config.estimators]
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
    for one in ESTIMATORS:
        bases = [name for name in one.built_on if name in left_out]
        if reason := f"{bases[0]} is left out" if bases else _lack(one, config, tasks):
            left_out[one.id] = reason
    return [one for one in ESTIMATORS if one.id not in left_out], left_out


def chosen_for(model: str, chosen: Sequence[Estimator], config: Config) -> list[Estimator]:
    """Those of the run's estimators that are computed for one model of its studies."""
    return [one for one in chosen if one.role != "broader" or config.wants_broader(model)]


def _broader_pairs(config: Config) -> list[tuple[str, str]]:
    """The (model, task) pairs of models that get methods of role 'broader', the supervised ones."""
    return [(model, task) for model, task in config.pairs() if config.wants_broader(model)]


def _lack(one: Estimator, config: Config, tasks: Mapping[str, TaskSpec]) -> str:
    """What the configuration lacks for an estimator; empty where nothing."""
    try:
        require_encoders(config.encoders, config.sampling, [one.id], config.world is not None)
        require_training_rows([one], _broader_pairs(config), tasks, config.lars)
    except (InputError, ValueError) as error:
        return str(error)
    return ""
