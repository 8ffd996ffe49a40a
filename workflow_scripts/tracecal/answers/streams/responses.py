"""Streams of OpenAI's Responses API, whole or cut."""

from tracecal.answers.formats.format import Row
from tracecal.answers.streams.stream import Stream, add_list, add_text

END_EVENTS = ("response.completed", "response.incomplete")  # the events that hold a whole response


class ResponseStream(Stream):
    """A response: that of the last event, or what the events before spell where it is missing."""

    @staticmethod
    def recognises(value: Row) -> bool:
        """Whether an event's type is one of a response."""
        return str(value.get("type")).startswith("response.")

    @classmethod
    def is_piece(cls, value: Row) -> bool:
        """Whether an object is an event."""
        return cls.recognises(value)

    def continues(self, piece: Row) -> bool:
        """Whether no other response begins."""
        return not self.has_ended and piece["type"] != "response.created"

    def add(self, piece: Row) -> None:
        """Add what an event holds."""
        kind, response = piece["type"], piece.get("response")
        if kind in END_EVENTS and isinstance(response, dict):
            self.answer, self.has_ended = response, True
        elif isinstance(response, dict):
            self.answer |= {name: value for name, value in response.items() if name != "output"}
        output = self.answer.setdefault("output", [])
        if not isinstance(place := piece.get("output_index"), int) or place > len(output):
            return
        if place == len(output):
            output.append({"type": "message", "content": []})
        if isinstance(piece.get("item"), dict):  # as it begins, or whole
            output[place] = piece["item"] | {"content": piece["item"].get("content") or []}
        elif kind == "response.output_text.delta":
            part = _part_of(output[place], piece)
            add_text(part, "text", piece.get("delta"))
            add_list(part, "logprobs", piece.get("logprobs"))


def _part_of(item: Row, piece: Row) -> Row:
    """The part of an item's content that a piece belongs to."""
    content = item.setdefault("content", [])
    place = piece.get("content_index")
    if not isinstance(place, int) or place >= len(content):
        content.append({"type": "output_text", "text": ""})
        return content[-1]  # type: ignore[no-any-return]
    return content[place]  # type: ignore[no-any-return]
