"""Labels of the parts of an answer, which stand beside it in its row: verdicts or wrong spans."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracecal.answers.verdict import parse_verdict
from tracecal.errors import WrongRow


class PartLabels(NamedTuple):
    """Labels of the parts of an answer; None where its row has none of the kind.

    Attributes
    ----------
    correct
        Verdicts, by the name of the part.
    wrong_spans
        Characters [start, end) of the answer that are wrong; a part that overlaps any is wrong.
    single
        Whether the row is a line of `tracecal label` on one part; the other parts of its answer
        have lines of their own.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None
    single: bool = False

    def merge(self, labels: "PartLabels") -> "PartLabels | None":
        """Both labels of one answer together; None unless each is of a single part."""
        if not (self.single and labels.single):
            return None
        return self._replace(correct={**(self.correct or {}), **(labels.correct or {})})


def split_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and the labels; None where it has none.

    Raises `WrongRow` where they are not verdicts or spans.

    >>> row, labels = split_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    >>> row, labels.correct
    ({'id': 'q'}, {'capital': True, 'currency': False})
    """
    if not isinstance(row, dict):
        return row, None
    values, spans, labelled = row.get("correct"), row.get("wrong_spans"), row.get("labelled")
    if single := isinstance(labelled, dict) and isinstance(labelled.get("part"), str):
        row = {name: row[name] for name in row if name != "labelled"}
        verdict = labelled.get("correct")
        values, spans = {labelled["part"]: "unsure" if verdict is None else verdict}, None
    correct = None
    if isinstance(values, dict):
        verdicts = {str(name): parse_verdict(value) for name, value in values.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _parse_spans(spans)
    if correct is None and spans is None:
        return row, None
    removed = {"wrong_spans", *(["correct"] if correct is not None else [])}
    labels = PartLabels(correct, spans, single)
    return {name: row[name] for name in row if name not in removed}, labels


def _parse_spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not is_pair or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongRow(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]
