"""A list of estimators, and what each needs beyond a trace."""

from collections.abc import Callable, Collection

from tracecal.estimators.column_estimators import COLUMNS
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import ESTIMATORS

# What to call the artefacts that estimators need, where their names do not say it.
ARTEFACT_NAMES = {
    "asked": "answers to further questions",
    "hidden": "hidden states",
    "importance": "encoders",
    "similarity": "encoders",
}
# What takes another pass of the model, or more. The encoder of similarity reads an answer once for
# each token.
COSTLY_NEEDS = frozenset({"beams", "samples", "asked", "hidden", "similarity"})


class Estimators(tuple[Estimator, ...]):
    """Some estimators in the registry's order, and what rules are given of them."""

    def where(self, kept: Callable[[Estimator], object]) -> "Estimators":
        return Estimators(filter(kept, self))

    def named(self, ids: Collection[str]) -> "Estimators":
        return self.where(lambda e: e.id in ids)

    @property
    def scored(self) -> "Estimators":
        """Those with a column of `scores/`."""
        return self.where(lambda e: not e.features)

    @property
    def learned(self) -> "Estimators":
        """Those that are fitted on several inputs."""
        return self.where(lambda e: e.features)

    @property
    def baselines(self) -> "Estimators":
        return self.where(lambda e: e.role == "baseline")

    @property
    def ids(self) -> list[str]:
        return [e.id for e in self]

    @property
    def families(self) -> list[str]:
        """The families whose files hold their scores."""
        return sorted({e.family for e in self.scored})

    @property
    def inputs(self) -> dict[str, list[str]]:
        """The inputs of their fits."""
        return {e.id: e.inputs for e in self}

    @property
    def own_fits(self) -> dict[str, str]:
        return {e.id: e.fit for e in self if e.fit}


def _with_bases(estimator: Estimator) -> list[Estimator]:
    return [estimator, *(e for e in ESTIMATORS if e.id in estimator.built_on)]


def costly(estimator: Estimator) -> bool:
    """Whether a run with `study.broader` computes an estimator on the subset alone."""
    return any(not COSTLY_NEEDS.isdisjoint(e.needs) for e in _with_bases(estimator))


def beyond_traces(estimator: Estimator) -> str:
    """What an estimator needs beyond traces and labels; empty if nothing."""
    for e in _with_bases(estimator):
        if e.supervised:
            return "labelled training answers"
        given = ("traces", "features", "labels", COLUMNS)
        if more := [need for need in e.needs if need not in given]:
            return ARTEFACT_NAMES.get(more[0], more[0])
    return ""
