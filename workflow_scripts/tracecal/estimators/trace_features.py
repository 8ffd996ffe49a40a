"""Features and TRACE scores of traces that are given as lists of numbers."""

from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.answers import require_threads
from tracecal.answers.record import RECORDS
from tracecal.errors import InputError
from tracecal.estimators.features import FEATURES, answer_features, input_matrix

SCHEMA = pl.Schema(RECORDS)  # type: ignore[arg-type]


def trace_features(surprisal: Any, entropy: Any = None) -> pl.DataFrame:
    """Compute the features of traces: TRACE's operators and the inputs of its fits.

    Parameters
    ----------
    surprisal, entropy : list of lists, or series of lists
        One list per answer with a number per token, in nats: the surprisal of the generated token,
        and the entropy of its distribution. A list of numbers is one answer; an entropy may be
        None.

    Returns
    -------
    polars.DataFrame
        A row per answer and a Float64 column per feature, missing where it is undefined, as
        features of entropies are without these. Source: appendix B of the paper, and
        docs/reference/definitions.md.

    Raises
    ------
    InputError
        Where lists are empty, of unequal lengths, negative or not finite.

    Examples
    --------
    >>> import tracecal
    >>> features = tracecal.trace_features([[0.5, 0.25]], [[2.0, 1.0]])
    >>> features["mean_entropy"].item(), features["length"].item()
    (1.5, 2.0)
    """
    traces = traces_in(surprisal, entropy)
    features = answer_features(traces.with_row_index("example_id")).select(*FEATURES)
    return features.with_columns(pl.when(pl.all().is_finite()).then(pl.all()))


def trace_score(surprisal: Any, entropy: Any) -> Any:
    """Compute TRACE, exp(-R), of traces without labels: larger is more confident.

    Parameters
    ----------
    surprisal, entropy : list of lists, or series of lists
        One answer each, in nats; see `trace_features`.

    Returns
    -------
    polars.Series, or float for one answer
        In (0, 1]; None where an answer has no entropies. Source: equation 1 of the paper, with the
        weights of its appendix B; `tracecal.estimators.operators.trace_risk` takes others.

    Raises
    ------
    InputError
        As `trace_features`.

    Examples
    --------
    >>> import tracecal
    >>> round(tracecal.trace_score([0.5], [2.0]), 6)  # exp(-(0.4 * 2 + 0.4 * 2 + 0.2 * 0.5))
    0.182684
    """
    score = input_matrix(traces_in(surprisal, entropy), ["scores.trace"])[:, 0]
    scores = pl.Series("trace", score, nan_to_null=True)
    return scores.item() if _is_single(surprisal) else scores


def _is_single(surprisal: Any) -> bool:
    """Whether surprisals are a list of numbers, of one answer."""
    return not isinstance(surprisal, pl.Series) and np.ndim(next(iter(surprisal), [])) == 0


def traces_in(surprisal: Any, entropy: Any) -> pl.DataFrame:
    """Frame `surprisal` and `entropy` of answers, or of one, rounded as traces are stored.

    Raises as `trace_features`.
    """
    require_threads()
    columns = surprisal, entropy
    if _is_single(surprisal):
        columns = [surprisal], None if entropy is None else [entropy]
    try:
        s, h = (
            pl.Series(name, [None] * len(columns[0]) if values is None else values)
            .cast(SCHEMA[name])
            .alias(name)
            for name, values in zip(("surprisal", "entropy"), columns, strict=True)
        )
        traces = pl.DataFrame([s, h])
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"traces are a list of numbers per answer, as many of surprisals as of entropies "
            f"({str(error).splitlines()[0]})."
        ) from error
    sound = pl.lit(True)
    for name in traces.columns:
        values, finite = pl.col(name).list, pl.element().is_finite() & (pl.element() >= 0)
        valid = (values.len() > 0) & (values.len() == pl.col("surprisal").list.len())
        valid &= values.eval(finite.fill_null(False)).list.all()
        sound &= valid | pl.col(name).is_null()
    if (broken := traces.with_row_index("number").filter(~sound.fill_null(False))).height:
        raise InputError(
            f"the trace of answer {broken['number'][0]} (counted from 0) is empty, of unequal "
            "lengths, or holds a value that is negative or not finite: expected nats per token."
        )
    return traces
