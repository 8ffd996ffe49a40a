"""The answer of the main study that the framework figure shows as an example."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from tracecal.analyse.pairs import KEYS, read_labels, read_pairs
from tracecal.decode.traces import read_traces
from tracecal.figures.glyphs import legible

FEATURES = (
    "length",
    "first3_entropy_conf",
    "mean_entropy",
    "decayed_entropy",
    "window_entropy",
    "entropy_slope",
    "length_normalised_surprisal",
    "trace_risk",
)
TRACE = ["example_id", "answer", "tokens", "surprisal", "entropy"]
CONFIDENT = 0.5  # mean token probability from which an answer counts as confident


class Example(NamedTuple):
    """An answer, its trace (nats), its `FEATURES`, and TRACE+'s probability where there is one.

    `correct` is its label, `references` are the task's reference answers; with a `passage` the
    prompt holds more than the question.
    """

    question: str
    answer: str
    correct: bool
    references: Sequence[str]
    tokens: Sequence[str]
    surprisal: Sequence[float]
    entropy: Sequence[float]
    features: dict[str, float]
    probability: float | None
    passage: bool = False


def read_example(
    traces: Sequence[str],
    features: Sequence[str],
    labels: Sequence[str],
    predictions: Sequence[str],
    tasks: Sequence[str],
    pairs: Sequence[Sequence[str]],
) -> Example | None:
    """The confident error with the most pronounced peak; None where no answer has entropies.

    Each list of paths has one file per pair, in the order of `pairs`. Raises `InputError` where
    there is no pair.
    """
    # Answers from files may lack entropies.
    answers = read_pairs(features, pairs, ["example_id", *FEATURES]).drop_nulls("mean_entropy")
    if answers.is_empty():
        return None
    for more in (
        read_pairs(tasks, pairs, ["example_id", "question", "references", "context"]),
        read_pairs(traces, pairs, TRACE, read_traces),
        read_labels(labels, pairs),
    ):
        answers = answers.join(more, on=KEYS, validate="1:1")
    texts = answers.select(pl.col("question") + pl.col("answer")).to_series()
    answers = answers.with_columns(
        legible=pl.Series([legible(text) for text in texts]),
        mean_prob=pl.col("surprisal").list.eval((-pl.element()).exp()).list.mean(),
    )
    example = confident_error(answers)
    fitted = read_pairs(predictions, pairs, ["estimator", "example_id", "probability"])
    own = fitted.filter(estimator="trace_plus", **{name: example[name] for name in KEYS})
    return Example(
        *(example[name] for name in ("question", "answer", "correct", "references")),
        *(example[name] for name in ("tokens", "surprisal", "entropy")),
        {name: example[name] for name in FEATURES},
        own["probability"].mean(),
        example["context"] is not None,
    )


def confident_error(answers: pl.DataFrame) -> dict[str, object]:
    """The row of the wrong answer that is confident on average and has the highest peak.

    `answers`, at least one, holds `task`, `example_id`, `correct`, `mean_prob` (the mean of its
    tokens' probabilities), `window_entropy`, `mean_entropy` and `legible`. A correct, unsure
    or illegible answer is chosen only where there is no other. The peak is M_H^(4) - mean H, the
    spike gap; ties go to the first by task and id.
    """
    for kind in (pl.col("legible"), ~pl.col("correct"), pl.col("mean_prob") >= CONFIDENT):
        preferred = answers.filter(kind)
        answers = answers if preferred.is_empty() else preferred
    gap = pl.col("window_entropy") - pl.col("mean_entropy")
    return answers.sort(-gap, "task", "example_id").row(0, named=True)
