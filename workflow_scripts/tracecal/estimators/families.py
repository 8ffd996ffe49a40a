"""Families of estimators whose scores take a line each: TRACE, beams, self-evaluation, supervised.

1. `FAMILIES["beam"]` has what the family reads, `answers`, and the score of each estimator by id.
2. `answers(**files)` reads the evaluated answers of a task.
3. `family_scores` computes the scores that are asked for.

TRACE and its single operators are confidence from localised risk (paper, section 3.4); TRACE+ is
the calibration protocol fitted on the features named in the registry, and has no function. Of beams
(Flores et al. 2025) b_k are the length-normalised log-probabilities, best first, and q =
softmax(b). P(True) (Kadavath et al. 2022) is the probability that a model gives to its answer being
true, undefined where it gives none to either option; verbalised confidence (Tian et al. 2023) is
the number that it states, if any. Supervised estimators were trained on separate labelled rows and
give a probability: the internal-state probe (Ji et al. 2024) before a token is generated, LARS
(Yaldiz et al. 2025) from the text and token probabilities of an answer. Columns are numbers of the
user's own, which files of answers hold beside the trace.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from tracecal.answers.record import ALSO
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_arrow

BEAMS = pl.col("normalised")
SHARES = BEAMS.list.eval((pl.element() - pl.element().max()).exp()).list.eval(
    pl.element() / pl.element().sum()
)
P_A, P_B = pl.col("p_a"), pl.col("p_b")


class ComputedScores(dict[str, pl.Expr]):
    """Scores that `answers` has read or computed: each is the column of its name."""

    def __missing__(self, name: str) -> pl.Expr:
        return pl.col(name)


class FamilyScores(NamedTuple):
    """What a family reads of a task's evaluated answers, and its scores of them by id."""

    answers: Callable[..., pl.DataFrame]
    SCORES: dict[str, pl.Expr]


def read_features(features: str) -> pl.DataFrame:
    """The trace features of answers."""
    return read_parquet(features, needed=["example_id", "trace_risk"])


def normalised(beams: pl.DataFrame) -> pl.DataFrame:
    """Beams with `normalised`, the list of total log-probabilities over lengths (nats a token)."""
    return beams.with_columns(normalised=pl.col("beam_logprob") / pl.col("beam_length"))


def read_beams(beams: str) -> pl.DataFrame:
    """The beams of answers."""
    return normalised(read_arrow(beams, ["example_id", "beam_logprob", "beam_length"]))


def read_replies(asked: str) -> pl.DataFrame:
    """A model's reply about each of its answers: `p_a` and `p_b`, or `confidence`."""
    return read_arrow(asked)


def read_predictions(learned: str, task: str, slug: str) -> pl.DataFrame:
    """`example_id` and `probability` of the evaluated answers to the task `slug`.

    `learned` is the file of all answers of a model, `task` the file of the rows of the task.
    """
    probabilities = read_parquet(learned, ["task", "example_id", "probability"])
    # Ids are unique only within a task.
    return evaluated(probabilities.filter(task=slug).drop("task"), task)


def read_columns(task: str) -> pl.DataFrame:
    """The user's own columns of answers (study.columns), by name, from the file of the rows."""
    rows = read_parquet(task, needed=["example_id", "role"]).filter(role="evaluation")
    columns = cs.starts_with(ALSO).name.map(lambda name: name.removeprefix(ALSO))
    return rows.select("example_id", columns)


FAMILIES = {
    "trace": FamilyScores(
        read_features,
        {
            "trace": np.exp(-pl.col("trace_risk")),
            "operator_d": -pl.col("decayed_entropy"),
            "operator_m": -pl.col("window_entropy"),
            "operator_l": -pl.col("length_normalised_surprisal"),
        },
    ),
    "beam": FamilyScores(
        read_beams,
        {
            "beam_ratio": (BEAMS.list.first() - BEAMS.list.last()).exp(),
            "beam_tail_thinness": SHARES.list.agg((pl.element() ** 2).sum()),
            "beam_entropy": SHARES.list.agg(
                (pl.element() * pl.element().log()).fill_nan(0.0).sum()
            ),
        },
    ),
    "p_true": FamilyScores(read_replies, {"p_true": P_A / (P_A + P_B)}),
    "verbalized": FamilyScores(read_replies, {"verbalized": pl.col("confidence")}),
    "internal_probe": FamilyScores(read_predictions, {"internal_probe": pl.col("probability")}),
    "lars": FamilyScores(read_predictions, {"lars": pl.col("probability")}),
    "columns": FamilyScores(read_columns, ComputedScores()),
}
