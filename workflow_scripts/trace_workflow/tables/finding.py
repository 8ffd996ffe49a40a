"""A finding: a sentence on a topic, with the table that has its details and perhaps its numbers.

A `Topic` holds the sentence with {facts} in braces; `topic.finding(...)` fills them in.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import polars as pl

Outcome = Literal["won", "tied", "lost"]
OUTCOMES: tuple[Outcome, ...] = ("won", "tied", "lost")


class Finding(NamedTuple):
    """A sentence on a `topic`, and the table that has its details.

    A comparison of TRACE+ with a baseline has an `outcome`, None without an interval, and its
    numbers: a positive `difference` is in TRACE+'s favour.
    """

    topic: str
    sentence: str
    table: str
    outcome: Outcome | None = None
    model: str | None = None
    task: str | None = None
    task_label: str | None = None
    metric: str | None = None
    against: str | None = None
    baseline: str | None = None
    value: float | None = None
    reference: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None


class Topic(NamedTuple):
    """What findings are about: an id, the table with the details, and the sentence.

    >>> Topic("run", "main_comparison", "{model} gave {n} answers.").finding(model="Tiny", n=3)[:2]
    ('run', 'Tiny gave 3 answers.')
    """

    id: str
    table: str
    sentence: str = "{sentence}"

    def finding(self, **facts: object) -> Finding:
        return Finding(self.id, self.sentence.format(**facts), self.table)


NUMBERS = ("value", "reference", "difference", "low", "high", "level")
SCHEMA = {name: pl.Float64 if name in NUMBERS else pl.String for name in Finding._fields}


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """A row per finding, in their order."""
    return pl.DataFrame([finding._asdict() for finding in findings], schema=SCHEMA)


def outcome_of(low: float | None, high: float | None) -> Outcome | None:
    """Whether a difference is won, tied or lost by its interval; None without one.

    >>> outcome_of(0.1, 0.2), outcome_of(-0.1, 0.2), outcome_of(None, None)
    ('won', 'tied', None)
    """
    if low is None or high is None:
        return None
    return "tied" if low <= 0 <= high else "won" if low > 0 else "lost"


def format_interval(level: float, low: float, high: float) -> str:
    """A difference's interval.

    >>> format_interval(0.95, -0.01, 0.03)
    '95% interval -0.010 to +0.030'
    """
    return f"{100 * level:g}% interval {low:+.3f} to {high:+.3f}"
