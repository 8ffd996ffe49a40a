"""Labels of parts of an answer, beside it in its row."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracecal.answers.verdict import verdict
from tracecal.answers.wrong_row import WrongRow


class PartLabels(NamedTuple):
    """Verdicts by the part's name; or the characters [start, end) of the answer that are wrong, of
    which a part is wrong that overlaps any. Null where a row does not give them so.

    `of_one` says that the row is a line of `tracecal label` on one part; the answer's other parts
    have lines of their own.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None
    of_one: bool = False

    def and_of(self, other: "PartLabels") -> "PartLabels | None":
        """Both as labels of one answer; null where they are not of one part each."""
        if not (self.of_one and other.of_one):
            return None
        return self._replace(correct={**(self.correct or {}), **(other.correct or {})})


def without_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and these; null where it has none.

    Raises `WrongRow` where they are not verdicts or spans.

    >>> row, labels = without_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    >>> row, labels.correct
    ({'id': 'q'}, {'capital': True, 'currency': False})
    """
    if not isinstance(row, dict):
        return row, None
    told, spans, judged = row.get("correct"), row.get("wrong_spans"), row.get("labelled")
    if of_one := isinstance(judged, dict) and isinstance(judged.get("part"), str):
        row = {name: row[name] for name in row if name != "labelled"}
        told, spans = {judged["part"]: judged.get("correct")}, None
    correct = None
    if isinstance(told, dict):
        verdicts = {str(name): verdict(value) for name, value in told.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _spans(spans)
    if correct is None and spans is None:
        return row, None
    left_out = {"wrong_spans", *(["correct"] if correct is not None else [])}
    labels = PartLabels(correct, spans, of_one)
    return {name: row[name] for name in row if name not in left_out}, labels


def _spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        whole = isinstance(pair, list | tuple) and len(pair) == 2
        if not whole or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongRow(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]
