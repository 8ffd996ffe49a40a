"""Labelled answers that the report's page shows: some that a guarantee keeps, some that it drops.

`choose_examples(training, predictions, control, error_rate)` picks them along the ranking and gives
their tokens a shade each.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from tracecal.calibrator.ranking import ranking_scores
from tracecal.calibrator.schema import ErrorRateControl
from tracecal.calibrator.training_set import TrainingSet

N_EXAMPLES = 10  # answers kept, and as many dropped
MAX_TOKENS = 48  # of an answer, around its most surprising token
MAX_QUESTION = 240  # characters, at the question's end
ELLIPSIS = "…"
# Tokens without a text, such as the one that ends an answer; they are shown as in the explorer.
SPECIAL = re.compile(r"<[|｜][^<>]+[|｜]>|</?(s|bos|eos|pad|unk|(start|end)_of_turn)>")
MARK = "∎"
# A token's shade counts the probabilities that its own is below.
SHADES = (0.9, 0.6, 0.3, 0.1)


@dataclass(frozen=True)
class ExampleAnswer:
    """An answer as the page shows it.

    Attributes
    ----------
    answer_id : str
        Id of the answer; of a part, the id of the whole answer.
    probability : float
        That it is right, by a fit that had not seen it.
    correct : bool
        Its label.
    tokens : sequence of (str, int)
        Texts, and shades from 0 (the model was sure) to ``len(SHADES)``.
    question : str
        Empty where no row or prompt holds it.
    part : str
        The part's name; empty for a whole answer.
    """

    answer_id: str
    probability: float
    correct: bool
    tokens: Sequence[tuple[str, int]]
    question: str = ""
    part: str = ""

    def with_question(self, question: str | None) -> Self:
        """The same with another question, if there is one."""
        return replace(self, question=shorten(question)) if question else self


@dataclass(frozen=True)
class ExampleAnswers:
    """Answers `above` and `below` a threshold, and how many there are of either.

    Without a guarantee `is_guaranteed` is false, and halves of the ranking take their place.
    """

    above: Sequence[ExampleAnswer]
    below: Sequence[ExampleAnswer]
    n_above: int
    n_below: int
    is_guaranteed: bool

    def with_questions(self, questions: Mapping[str, str]) -> Self:
        """The same with the `questions` of answers by id, in place of their prompts."""
        above, below = (
            [each.with_question(questions.get(each.answer_id)) for each in side]
            for side in (self.above, self.below)
        )
        return replace(self, above=above, below=below)


def choose_examples(
    training: TrainingSet,
    predictions: pl.DataFrame,
    control: ErrorRateControl,
    error_rate: float | None,
) -> ExampleAnswers:
    """Choose up to `N_EXAMPLES` kept and as many dropped answers, evenly spaced by rank.

    `predictions` are the shown estimator's `example_id` and cross-fitted `probability`; labelled
    answers without a ranking score are left out.
    """
    rows = training.frame.join(predictions.drop_nulls("probability"), on="example_id")
    score = pl.Series("score", ranking_scores(training, rows, control))
    rows = rows.with_columns(score).filter(pl.col("score").is_finite())
    rows = rows.sort("score", "example_id", descending=[True, False])
    entry = next((each for each in control.thresholds if each.error_rate == error_rate), None)
    if entry is None or entry.threshold is None:
        is_kept = pl.int_range(pl.len()) < (pl.len() + 1) // 2
    else:
        is_kept = pl.col("score") >= entry.threshold
    kept, dropped = rows.filter(is_kept), rows.filter(~is_kept)
    return ExampleAnswers(
        above=_examples(training.records, kept),
        below=_examples(training.records, dropped),
        n_above=kept.height,
        n_below=dropped.height,
        is_guaranteed=entry is not None and entry.threshold is not None,
    )


def shade(surprisal: float | None) -> int:
    """A token's shade by its surprisal (nats): 0 where the model was sure, or where it is unknown.

    >>> shade(0.0), shade(1.0), shade(5.0), shade(None)
    (0, 2, 4, 0)
    """
    if surprisal is None or not math.isfinite(surprisal):
        return 0
    return sum(math.exp(-surprisal) < probability for probability in SHADES)


def shade_tokens(
    tokens: Sequence[str], surprisal: Sequence[float | None] | None
) -> list[tuple[str, int]]:
    """Tokens with their shades: of a long answer the `MAX_TOKENS` around the darkest, which are
    the first where several are.

    >>> shade_tokens(["Par", "is", "</s>"], [0.0, 3.0, 0.0])
    [('Par', 0), ('is', 4), ('∎', 0)]
    """
    tokens = [MARK if SPECIAL.fullmatch(token) else token for token in tokens]
    values = surprisal if surprisal and len(surprisal) == len(tokens) else [None] * len(tokens)
    shades = [shade(value) for value in values]
    if len(tokens) <= MAX_TOKENS:
        return list(zip(tokens, shades, strict=True))
    peak = max(range(len(tokens)), key=lambda place: (values[place] or 0.0, -place))
    start = min(max(0, peak - MAX_TOKENS // 2), len(tokens) - MAX_TOKENS)
    end = start + MAX_TOKENS
    before = [(ELLIPSIS, 0)] if start else []
    after = [(ELLIPSIS, 0)] if end < len(tokens) else []
    return before + list(zip(tokens[start:end], shades[start:end], strict=True)) + after


def shorten(question: str) -> str:
    """The end of a question, where a prompt asks; on one line."""
    line = " ".join(question.split())
    return line if len(line) <= MAX_QUESTION else ELLIPSIS + line[1 - MAX_QUESTION :]


def _examples(records: pl.DataFrame, rows: pl.DataFrame) -> list[ExampleAnswer]:
    places = np.linspace(0, rows.height - 1, min(N_EXAMPLES, rows.height)).round().astype(int)
    shown = rows.select("example_id", "probability")[places.tolist()] if rows.height else rows
    joined = shown.join(records, on="example_id", validate="1:1", maintain_order="left")
    return [_example(row) for row in joined.iter_rows(named=True)]


def _example(row: Mapping[str, Any]) -> ExampleAnswer:
    return ExampleAnswer(
        answer_id=row.get("parent_id") or row["example_id"],
        probability=row["probability"],
        correct=row["correct"],
        tokens=shade_tokens(row["tokens"], row["surprisal"])
        if row["tokens"]
        else [(row["answer"] or "", 0)],
        question=shorten(row["prompt"] or ""),
        part=row.get("name") or "",
    )
