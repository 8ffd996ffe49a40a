"""Streams of Gemini's ``streamGenerateContent``, as events or as a list."""

from typing import Any

from tracecal.answers.formats.format import Row
from tracecal.answers.streams.stream import Stream, add_list

IDS = ("responseId", "response_id")
FINISHES = ("finishReason", "finish_reason")
LOGPROBS = ("logprobsResult", "logprobs_result")


class GeminiStream(Stream):
    """A response, whose pieces have its id, or end with a reason."""

    @staticmethod
    def recognises(value: Row) -> bool:
        """Whether an event has `candidates`."""
        return isinstance(value.get("candidates"), list)

    @classmethod
    def is_piece(cls, value: Row) -> bool:
        """Whether a response has candidates none of which has ended."""
        if not cls.recognises(value) or not super().is_piece(value):
            return False
        candidates = [each for each in value["candidates"] if isinstance(each, dict)]
        return any(_first(candidate, FINISHES) is None for candidate in candidates)

    def continues(self, piece: Row) -> bool:
        """Whether a piece has this response's id; without ids, whether none has ended it."""
        ids = [_first(row, IDS) for row in (self.answer, piece)]
        return ids[0] == ids[1] if all(ids) else not self.has_ended

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        candidates = {row["index"]: row for row in self.answer.get("candidates", ())}
        for number, part in enumerate(piece["candidates"]):
            if isinstance(part, dict):
                index = part["index"] if isinstance(part.get("index"), int) else number
                _add_part(candidates.setdefault(index, {"index": index}), part)
        stated = {name: value for name, value in piece.items() if value is not None}
        self.answer |= stated | {"candidates": [candidates[index] for index in sorted(candidates)]}
        ended = (_first(row, FINISHES) is not None for row in candidates.values())
        self.has_ended = bool(candidates) and all(ended)


def _add_part(candidate: Row, part: Row) -> None:
    """Add a part of a candidate: parts of its content, log-probabilities, why it ended."""
    if isinstance(content := part.get("content"), dict):
        add_list(candidate.setdefault("content", {}), "parts", content.get("parts"))
    for name in LOGPROBS:
        if isinstance(result := part.get(name), dict):
            for field, values in result.items():
                add_list(candidate.setdefault(name, {}), field, values)
    candidate |= {name: part[name] for name in FINISHES if part.get(name) is not None}


def _first(row: Row, names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)
