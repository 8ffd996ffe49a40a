"""A list of estimators, and the needs of each beyond a trace."""

from collections.abc import Callable, Collection

from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import COLUMNS, ESTIMATORS

# Names of needs in sentences, where the id is unclear.
NAMES_OF_NEEDS = {
    "asked": "answers to further questions",
    "hidden": "hidden states",
    "importance": "encoders",
    "similarity": "encoders",
}
# Needs that take another pass of the model, or more: the encoder of similarity reads an answer once
# for each token.
COSTLY_NEEDS = frozenset({"beams", "samples", "asked", "hidden", "similarity"})


class EstimatorList(tuple[Estimator, ...]):
    """Estimators in the registry's order, with the lists that rules need.

    Examples
    --------
    >>> baselines = EstimatorList(ESTIMATORS).baselines
    >>> baselines.with_ids({"seq_logp", "trace"}).ids
    ['seq_logp']
    """

    def where(self, condition: Callable[[Estimator], object]) -> "EstimatorList":
        return EstimatorList(filter(condition, self))

    def with_ids(self, ids: Collection[str]) -> "EstimatorList":
        return self.where(lambda e: e.id in ids)

    @property
    def scored(self) -> "EstimatorList":
        """The estimators with a column of `scores/`."""
        return self.where(lambda e: not e.features)

    @property
    def learned(self) -> "EstimatorList":
        """The estimators that are fitted on several inputs."""
        return self.where(lambda e: e.features)

    @property
    def baselines(self) -> "EstimatorList":
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
        """The fits, by id, of estimators that do not use the run's method."""
        return {e.id: e.fit for e in self if e.fit}


def costly(estimator: Estimator) -> bool:
    """Whether a run computes an estimator for `study.broader` alone."""
    return any(not COSTLY_NEEDS.isdisjoint(e.needs) for e in _with_bases(estimator))


def beyond_traces(estimator: Estimator) -> str:
    """The first need of an estimator beyond traces and labels; empty if there is none."""
    for e in _with_bases(estimator):
        if e.supervised:
            return "labelled training answers"
        follows_from_traces = ("traces", "features", "labels", COLUMNS)
        if needs := [need for need in e.needs if need not in follows_from_traces]:
            return NAMES_OF_NEEDS.get(needs[0], needs[0])
    return ""


def _with_bases(estimator: Estimator) -> list[Estimator]:
    """An estimator and those that it is built on."""
    return [estimator, *(e for e in ESTIMATORS if e.id in estimator.built_on)]
