"""Streams of Ollama's `/api/generate` and `/api/chat`: a JSON object a line."""

from tracecal.answers.formats.format import Row
from tracecal.answers.streams.stream import Stream, add_list, add_text

JOINED = ("message", "response", "thinking", "logprobs")


class OllamaStream(Stream):
    """An answer, whose last piece is `done`."""

    @staticmethod
    def recognises(value: Row) -> bool:
        """Whether an object says whether it is `done`."""
        return isinstance(value.get("done"), bool) and ("message" in value or "response" in value)

    @classmethod
    def is_piece(cls, value: Row) -> bool:
        """Whether an object says that it is not `done`."""
        return super().is_piece(value) and not value["done"] and "created_at" in value

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        self.answer |= {name: value for name, value in piece.items() if name not in JOINED}
        if isinstance(message := piece.get("message"), dict):
            joined = self.answer.setdefault("message", {})
            for name in ("content", "thinking"):
                add_text(joined, name, message.get(name))
        for name in ("response", "thinking"):
            add_text(self.answer, name, piece.get(name))
        add_list(self.answer, "logprobs", piece.get("logprobs"))
        self.has_ended = piece["done"]
