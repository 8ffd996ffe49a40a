"""Labels of parts of an answer, beside it in its row: verdicts, or spans that are wrong."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracecal.logs.evaluations import verdict
from tracecal.logs.steps import WrongRow


class PartLabels(NamedTuple):
    """Verdicts by the part's name; or the characters [start, end) of the answer that are wrong, of
    which a part is wrong that overlaps any. Null where a row does not give them so.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None


def without_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and these; null where it has none.

    Raises `WrongRow` where they are not verdicts or spans.

    >>> without_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    ({'id': 'q'}, PartLabels(correct={'capital': True, 'currency': False}, wrong_spans=None))
    """
    if not isinstance(row, dict):
        return row, None
    told, spans = row.get("correct"), row.get("wrong_spans")
    correct = None
    if isinstance(told, dict):
        verdicts = {str(name): verdict(value) for name, value in told.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _spans(spans)
    if correct is None and spans is None:
        return row, None
    left_out = {"wrong_spans", *(["correct"] if correct is not None else [])}
    return {name: row[name] for name in row if name not in left_out}, PartLabels(correct, spans)


def _spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        whole = isinstance(pair, list | tuple) and len(pair) == 2
        if not whole or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongRow(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]
