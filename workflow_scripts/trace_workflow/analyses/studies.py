"""A run's studies: 'main' evaluates one model, 'cross' compares several, each on its own tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl


def models_of(study: Mapping[str, Any]) -> Sequence[str]:
    """The ids of a study's models, or of its one model.

    >>> models_of({"model": "small", "tasks": ["sums"]})
    ['small']
    """
    return study["models"] if "models" in study else [study["model"]]


def in_study(study: Mapping[str, Any]) -> pl.Expr:
    """Whether a row's `model` and `task` are one of a study's pairs."""
    return pl.col("model").is_in(models_of(study)) & pl.col("task").is_in(study["tasks"])
