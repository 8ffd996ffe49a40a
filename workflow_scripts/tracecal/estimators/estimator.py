"""A confidence estimator: what it is called, needs, assumes and is fitted on.

Rules pass its `Entry` to tables and figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Role = Literal["baseline", "own", "trace", "broader", "variant"]  # 'own': the user's
# Fits that replace the run's method of calibration. 'identity' takes the input as the probability;
# 'log_odds_mean' averages the log odds of other estimators; 'pooled' fits all other estimators on
# parts of answers.
OwnFit = Literal["identity", "ridge", "prior_ridge", "mixture", "log_odds_mean", "pooled"]
TRACE_PLUS = "trace_plus"
PICKED = "picked_baseline"  # the id of the baseline selected in each split, beside the estimators'
REQUIREMENTS = {"asked": "E", "samples": "S", "hidden": "H"}
# What a method assumes (paper, appendix C), as 'yes', 'partly' or 'no': with the trace of the
# decoded answer alone, and what each need changes.
TRACE_ALONE = {"same": "yes", "single": "yes", "extra": "no", "semantic": "no", "calibrator": "no"}
ASSUMED = {
    "beams": {"single": "partly"},
    "asked": {"single": "partly"},
    "samples": {"single": "no", "extra": "yes"},
    "similarity": {"semantic": "yes"},
    "importance": {"semantic": "yes"},
    "labels": {"calibrator": "yes"},
}


@dataclass(frozen=True)
class Estimator:
    """A confidence estimator.

    Attributes
    ----------
    needs
        What its score is computed from, and so what it reads, costs and assumes: files of a run;
        `similarity` or `importance`, the encoder that weighs its tokens; `meanings`, which samples
        share.
    features
        Empty for a scalar estimator, whose score is a column of `scores/`. A learned one has no
        such column: these are the inputs of its fit, columns of `features/` or `scores.<id>`.
    assumes
        Where `needs` do not imply it.
    shown_as
        The family under which tables and figures show it; by default its own.
    fit
        None: the run's method of calibration.
    """

    id: str
    label: str
    family: str
    role: Role
    citation: str
    needs: tuple[str, ...] = ("traces",)
    features: tuple[str, ...] = ()
    assumes: Mapping[str, str] = field(default_factory=dict)
    shown_as: str = ""
    fit: OwnFit | None = None

    @property
    def group(self) -> str:
        """The family under which tables and figures show it."""
        return self.shown_as or self.family

    @property
    def supervised(self) -> bool:
        """Whether it is trained on labelled rows of the role 'training'."""
        return "labels" in self.needs and not self.features

    @property
    def inputs(self) -> list[str]:
        """The inputs of its fit, as `<folder>.<column>`."""
        return input_columns(self.features) or [f"scores.{self.id}"]

    @property
    def requires(self) -> str:
        """What it needs beyond a decoded answer and its trace, in the letters of ``broader_uq``.

        E extra inference, S samples, H hidden states, L labelled training, C calibration labels.
        """
        letters = [letter for need, letter in REQUIREMENTS.items() if need in self.needs]
        if "labels" in self.needs:
            letters.append("C" if self.features else "L")
        return "+".join(letters)

    @property
    def protocol(self) -> dict[str, str]:
        """What it assumes: by its needs, unless `assumes` says otherwise."""
        assumed = dict(TRACE_ALONE)
        for need in self.needs:
            assumed |= ASSUMED.get(need, {})
        return assumed | {**self.assumes}

    @property
    def built_on(self) -> list[str]:
        """The estimators whose scores it is fitted on."""
        scores = [name for name in self.features if name.startswith("scores.")]
        return [name.removeprefix("scores.") for name in scores]


class Entry(NamedTuple):
    """An estimator as tables and figures need it."""

    id: str
    label: str
    family: str
    role: str
    citation: str


def input_columns(features: Iterable[str]) -> list[str]:
    """The columns of an estimator's `features`, as `<folder>.<column>`.

    >>> input_columns(["log_length", "scores.mars"])
    ['features.log_length', 'scores.mars']
    """
    return [name if "." in name else f"features.{name}" for name in features]


def variant(id: str, label: str, *features: str, fit: OwnFit | None = None) -> Estimator:
    """A learned variant of TRACE."""
    needs = ("traces", "labels")
    return Estimator(id, label, "trace", "variant", "xu2026trace", needs, features, fit=fit)


def entries(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """The entries of `estimators`, as parameters of a rule."""
    return [
        {"id": e.id, "label": e.label, "family": e.group, "role": e.role, "citation": e.citation}
        for e in estimators
    ]
