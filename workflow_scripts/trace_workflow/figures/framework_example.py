"""The answer of the main study that the framework figure takes as its example."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.study_files import KEYS, StudyFiles
from trace_workflow.figures.drawable_text import is_legible
from tracecal.io.traces import read_traces

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
SHORT = 36, 90  # characters of an answer and of a question that the figure shows whole
CONFIDENT = 0.5  # mean token probability from which an answer counts as confident
DOUBTED = 0.25  # TRACE+'s probability up to which it counts as doubted


class FrameworkExample(NamedTuple):
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


def read_example(files: StudyFiles) -> FrameworkExample | None:
    """The doubted error with the most pronounced peak; None where no answer has entropies.

    Raises `InputError` where there is no pair.
    """
    # Answers from files may lack entropies.
    answers = files.read("features", ["example_id", *FEATURES]).drop_nulls("mean_entropy")
    if answers.is_empty():
        return None
    for frame in (
        files.read("tasks", ["example_id", "question", "references", "context"]),
        files.read("traces", TRACE, read_traces),
        files.labels(),
    ):
        answers = answers.join(frame, on=KEYS, validate="1:1")
    texts = answers.select(pl.col("question") + pl.col("answer")).to_series()
    answers = answers.with_columns(
        legible=pl.Series([is_legible(text) for text in texts]),
        short=(pl.col("answer").str.len_chars() <= SHORT[0])
        & (pl.col("question").str.len_chars() <= SHORT[1]),
        mean_prob=pl.col("surprisal").list.eval((-pl.element()).exp()).list.mean(),
    )
    predictions = files.read("predictions", ["estimator", "example_id", "probability"])
    predictions = predictions.filter(estimator="trace_plus").group_by(KEYS)
    answers = answers.join(predictions.agg(pl.mean("probability")), on=KEYS, how="left")
    row = confident_error(answers)
    return FrameworkExample(
        *(row[name] for name in ("question", "answer", "correct", "references")),
        *(row[name] for name in ("tokens", "surprisal", "entropy")),
        {name: row[name] for name in FEATURES},
        row["probability"],
        row["context"] is not None,
    )


def confident_error(answers: pl.DataFrame) -> dict[str, object]:
    """The row of the wrong answer that sounds confident, that TRACE+ doubts, with the highest peak.

    `answers`, at least one, holds `task`, `example_id`, `correct`, `mean_prob` (the mean of its
    tokens' probabilities), `probability`, `window_entropy`, `mean_entropy`, `legible` and `short`.
    A correct, unsure, trusted, illegible or long answer is taken only where there is no better one.
    The peak is M_H^(4) - mean H, the spike gap; ties go to the first by task and id.
    """
    sounds_confident = pl.col("mean_prob") >= CONFIDENT
    is_doubted = pl.col("probability") <= DOUBTED
    legible, wrong = pl.col("legible"), ~pl.col("correct")
    for condition in (legible, wrong, sounds_confident, is_doubted, pl.col("short")):
        preferred = answers.filter(condition)
        answers = answers if preferred.is_empty() else preferred
    gap = pl.col("window_entropy") - pl.col("mean_entropy")
    return answers.sort(-gap, "task", "example_id").row(0, named=True)
