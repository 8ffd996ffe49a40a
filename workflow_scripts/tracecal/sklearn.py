"""TRACE for scikit-learn: features of traces, and the fit that turns them into probabilities.

>>> from sklearn.pipeline import make_pipeline
>>> from tracecal.sklearn import LogRidgeClassifier, TraceFeatures
>>> traces = [([0.1 * n, 0.2], [0.3 * n, 0.1]) for n in range(1, 9)]  # surprisals, entropies
>>> correct = [True, True, True, False, True, False, False, False]
>>> model = make_pipeline(TraceFeatures("log_ridge"), LogRidgeClassifier()).fit(traces, correct)
>>> model.predict([([0.1, 0.2], [0.3, 0.1]), ([0.8, 0.2], [2.4, 0.1])]).tolist()
[True, False]
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from tracecal.answers.answers import answers_in
from tracecal.errors import InputError
from tracecal.estimators.features import TRACE_INPUTS, compute_inputs
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.trace_features import traces_in
from tracecal.fits.regression import EITHER_SIGN, RIDGE, fit_all

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise InputError(
        f"tracecal.sklearn needs {error.name}, which is not installed: pip install "
        "'tracecal[sklearn]'"
    ) from error

__all__ = ["LogRidgeClassifier", "TraceFeatures"]

# The protocol's inputs by the names of features, and by estimator those of traces alone.
INPUTS = {name.split(".", 1)[1]: name for name in reversed(TRACE_INPUTS)}
OF_ESTIMATOR = {e.id: e.inputs for e in ESTIMATORS if {*e.inputs} <= {*TRACE_INPUTS}}
CONFIDENCES = {
    name.split(".", 1)[1]
    for estimator in ("log_ridge", "stack_of_six")
    for name in OF_ESTIMATOR[estimator]
} - EITHER_SIGN


def __dir__() -> list[str]:
    return __all__


class TraceFeatures(TransformerMixin, BaseEstimator):
    """The features of answers' traces, as a frame with named columns; nothing is fitted.

    The frame is one of Polars; ``set_output(transform="pandas")`` gives one of pandas.

    Parameters
    ----------
    features : str or sequence of str
        The id of an estimator, for its inputs, such as ``"trace_plus"``, ``"log_ridge"`` or
        ``"stack_of_six"``; or names of features, such as ``["mean_entropy"]``.

    Examples
    --------
    >>> from tracecal.sklearn import TraceFeatures
    >>> TraceFeatures(["mean_entropy", "length"]).fit_transform([([0.5, 0.5], [2.0, 1.0])]).rows()
    [(1.5, 2.0)]
    """

    def __init__(self, features: str | Sequence[str] = "trace_plus") -> None:
        self.features = features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the names of the features; there is nothing to fit.

        Parameters
        ----------
        X : answers
            As in `transform`; ignored.
        y : ignored

        Returns
        -------
        TraceFeatures
        """
        self._columns()
        return self

    def transform(self, X: Any) -> pl.DataFrame:
        """Compute the features.

        Parameters
        ----------
        X : frame, rows or pairs
            n answers: a frame or rows as `tracecal.read_answers` takes them; a frame with the
            columns ``surprisal`` and ``entropy``; or pairs of a list of surprisals and one of
            entropies (or None), a number per token, in nats.

        Returns
        -------
        polars.DataFrame
            [n, features], Float64; None where undefined, as without entropies.

        Raises
        ------
        tracecal.InputError
            Where a trace is empty, of unequal lengths, negative or not finite.
        """
        columns = self._columns()
        traces = trace_columns(X).with_row_index("example_id")
        return compute_inputs(traces, columns.values()).select(
            pl.col(column).alias(name) for name, column in columns.items()
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        numpy.ndarray of str
        """
        return np.array([*self._columns()], dtype=object)

    def _columns(self) -> dict[str, str]:
        """The protocol's inputs by the names of the features."""
        if isinstance(self.features, str):
            if self.features not in OF_ESTIMATOR:
                raise InputError(
                    f"features={self.features!r}: expected names of features, or the id of an "
                    f"estimator of traces: {', '.join(OF_ESTIMATOR)}."
                )
            return {name.split(".", 1)[1]: name for name in OF_ESTIMATOR[self.features]}
        for name in self.features:
            if name not in INPUTS:
                raise InputError(f"there is no feature {name!r}; there are {', '.join(INPUTS)}.")
        return {name: INPUTS[name] for name in self.features}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True  # X is no matrix
        tags.input_tags.two_d_array = False
        return tags


def trace_columns(X: Any) -> pl.DataFrame:
    """The columns `surprisal` and `entropy` of answers in any form."""
    if hasattr(X, "__arrow_c_stream__"):
        frame = pl.DataFrame(X)
        if {"surprisal", "entropy"} <= {*frame.columns}:
            return traces_in(frame["surprisal"], frame["entropy"])
        return answers_in(frame).frame.select("surprisal", "entropy")
    rows = list(X)
    if rows and isinstance(rows[0], Mapping):
        return answers_in(rows).frame.select("surprisal", "entropy")
    if not all(len(pair) == 2 for pair in rows):
        raise InputError("expected pairs of a list of surprisals and one of entropies.")
    return traces_in([surprisal for surprisal, _ in rows], [entropy for _, entropy in rows])


class LogRidgeClassifier(ClassifierMixin, BaseEstimator):
    """Log ridge's fit: a strong penalty, and weights of confidences that are at least 0.

    Parameters
    ----------
    penalty : float
        Factor of the squared weights.
    rising : sequence of str or int, optional
        The columns, by name or number, whose weights are at least 0; by default those named as
        confidences of `TraceFeatures`.

    Examples
    --------
    >>> from tracecal.sklearn import LogRidgeClassifier
    >>> X, y = [[0.1], [0.2], [0.8], [0.9]], [0, 0, 1, 1]
    >>> LogRidgeClassifier(rising=[0]).fit(X, y).predict([[1.0]])
    array([1])
    """

    def __init__(
        self, penalty: float = RIDGE, rising: Sequence[str] | Sequence[int] | None = None
    ) -> None:
        self.penalty = penalty
        self.rising = rising

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the probability of the second class.

        Parameters
        ----------
        X : matrix or frame, [n, features]
            Finite; the names of its columns count.
        y : labels [n]
            Two classes, such as false and true.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Where there are not two classes.
        """
        X, correct = self._validated(X, y)
        names = [*map(str, getattr(self, "feature_names_in_", range(self.n_features_in_)))]
        numbers = [*map(str, range(len(names)))]
        rising = CONFIDENCES if self.rising is None else {*map(str, self.rising)}
        if self.rising is not None and (unknown := rising - {*names, *numbers}):
            raise ValueError(f"rising: X has no column {min(unknown)}")
        is_rising = [not rising.isdisjoint(pair) for pair in zip(names, numbers, strict=True)]
        lower_bounds = np.where(is_rising, 0.0, -np.inf)
        self.fit_ = fit_all([(X, correct)], "platt", self.penalty, lower_bounds)[0]
        return self

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y, input_name='y')}."
            )
        if len(self.classes_) < 2:
            raise ValueError("y holds one class; labels of two classes are needed")
        return X, codes == 1

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probabilities of both classes.

        Parameters
        ----------
        X : matrix or frame, [n, features]

        Returns
        -------
        numpy.ndarray, [n, 2]
        """
        check_is_fitted(self)
        proba = self.fit_.predict(validate_data(self, X, dtype=np.float64, reset=False))
        return np.column_stack([1 - proba, proba])

    def predict(self, X: Any) -> np.ndarray:
        """Give the likelier class.

        Parameters
        ----------
        X : matrix or frame, [n, features]

        Returns
        -------
        numpy.ndarray, [n]
        """
        proba = self.predict_proba(X)[:, 1]
        return self.classes_[(proba >= 0.5).astype(int)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
