"""Streams of `/completion` of llama.cpp's server."""

from tracecal.answers.formats.format import Row
from tracecal.answers.streams.stream import Stream, add_list, add_text

# Fields of a piece, one of which distinguishes it from a row with a column `stop`.
OWN = ("completion_probabilities", "id_slot", "tokens_predicted", "slot_id")
JOINED = ("content", "tokens", "completion_probabilities")


class LlamaCppStream(Stream):
    """An answer, whose last piece says `stop`."""

    @staticmethod
    def recognises(value: Row) -> bool:
        """Whether an event has a text and says whether to `stop`."""
        return isinstance(value.get("content"), str) and isinstance(value.get("stop"), bool)

    @classmethod
    def is_piece(cls, value: Row) -> bool:
        """Whether an object says that more comes."""
        is_own = any(name in value for name in OWN)
        return super().is_piece(value) and not value["stop"] and is_own

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        self.answer |= {name: value for name, value in piece.items() if name not in JOINED}
        add_text(self.answer, "content", piece["content"])
        for name in ("tokens", "completion_probabilities"):
            add_list(self.answer, name, piece.get(name))
        self.answer.setdefault("completion_probabilities", [])  # by which the format is recognised
        self.has_ended = piece["stop"]
